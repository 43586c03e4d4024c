internal import Coffer
internal import Glibc

/// A vault whose keys are to be changed, and what opens its slots.
struct KeySlotEditor {
  let vault: VaultBackend
  let description: VaultDescription
  let configuration: CofferConfiguration
  private let keyFiles: [String]

  /// Opens the vault. `keyFiles` are further ones, whose keys its slots may have.
  init(_ global: GlobalOptions, keyFiles: [String] = []) throws {
    let path = try global.vaultStore(toBe: "given other keys").path
    configuration = CofferConfiguration.current()
    self.keyFiles = keyFiles
    let prompt = RememberedPrompt()
    vault = configuration.vault(at: path, extraSources: configuration.mayPrompt ? [prompt] : [])
    try vault.unlock()
    prompt.stopAsking()
    description = try VaultBackend.describe(path: path)
  }

  /// A vault that was opened otherwise.
  init(vault: VaultBackend, description: VaultDescription, configuration: CofferConfiguration) {
    self.vault = vault
    self.description = description
    self.configuration = configuration
    keyFiles = []
  }

  /// The slot whose id begins with `text`.
  func slot(_ text: String) throws -> VaultKeySlot {
    let found = description.keySlots.filter { $0.id.hasPrefix(text.lowercased()) }
    guard text.utf8.count >= 4, let slot = found.first, found.count == 1 else {
      throw Failure.usage(
        "“\(text)” is not the beginning of one key slot's id, of 4 characters at least. See secret key list."
      )
    }
    return slot
  }

  /// The credentials of the slots that stay under a new master key, each of which needs its own: beside the
  /// vault's own sources, from the key files that were named, and from a person. Throws `.locked` where one
  /// cannot be had, and `.wrongKey` where what was entered is not the slot's.
  func credentials(of staying: [VaultKeySlot]) throws -> [any VaultCredentialSource] {
    var sources: [any VaultCredentialSource] = []
    for path in keyFiles {
      guard let key = try KeyFile(path: path).key() else {
        throw Failure(.noInput, "There is no key file \(path). Check the path.")
      }
      sources.append(GivenCredential(key: key, named: path))
    }
    var opened = try vault.keySlots(openedBy: sources)
    for slot in staying where !opened.contains(slot.id) {
      sources.append(try ask(for: slot))
      opened = try vault.keySlots(openedBy: sources)
      if !opened.contains(slot.id) {
        throw SecretError(
          .wrongKey,
          "That is not what opens the key slot \(slot.summary), and nothing was changed.",
          advice: "Try again."
        )
      }
    }
    return sources
  }

  private func ask(for slot: VaultKeySlot) throws -> any VaultCredentialSource {
    guard configuration.mayPrompt, Terminal.isThere else {
      throw SecretError(
        .locked,
        "Every key slot that stays must be opened for this, and nothing opens \(slot.summary).",
        advice: "Name a key's file with --key-file, set COFFER_PASSPHRASE_FILE, or do it on a terminal."
      )
    }
    switch slot.kind {
    case .passphrase:
      return GivenCredential(
        passphrase: try Terminal().readHidden("Passphrase of the key slot \(slot.summary): "))
    case .key:
      let text = try Terminal().readHidden("Key of the key slot \(slot.summary): ")
      return GivenCredential(key: try RecoveryKey.parse(text), named: "the terminal")
    default:
      throw SecretError(
        .unsupportedVersion,
        "The key slot \(slot.summary) was made by a later version.",
        advice: "Use that version for this."
      )
    }
  }

  /// What the kernel keeps is of no use after the master key was changed.
  func forgetKept() {
    do throws(SecretError) { try KernelKeyring().forget(vault: description.id) } catch {}
  }

  /// A new passphrase: asked for twice, or from a pipe by the rule of `set`.
  func newPassphrase() throws -> SecretBytes {
    let input = ValueInput()
    let passphrase: SecretBytes
    if input.asksPerson {
      guard configuration.mayPrompt, Terminal.isThere else {
        throw Failure.usage("There is no new passphrase, and nobody may be asked. Use a pipe.")
      }
      passphrase = try PassphrasePrompt.new(for: vault.path)
    } else {
      passphrase = try input.read(for: "")
    }
    if passphrase.isEmpty {
      throw Failure.usage(
        "The new passphrase is empty, and nothing was changed. Give it by the prompt or a pipe.")
    }
    return passphrase
  }

  /// Adds a slot with the key of a file, which is made where there is none.
  func addKeyFile(_ path: String, label: String) throws -> (slot: VaultKeySlot, isNew: Bool, path: String) {
    let file = KeyFile(path: try Directory.absolute(path))
    if let key = try file.key() { return (try vault.addKeySlot(.key(key), label: label), false, file.path) }
    let key = VaultKey.generate()
    try file.create(key)
    do throws(SecretError) {
      return (try vault.addKeySlot(.key(key), label: label), true, file.path)
    } catch {
      unlink(file.path)
      throw error
    }
  }
}

extension VaultKeySlot {
  /// What is enough of the id to name the slot.
  var shortID: String { String(id.prefix(12)) }

  var kindName: String { kind.description }

  /// For messages: the label is anyone's to choose.
  var summary: String { "\(shortID) (\(kindName)\(label.isEmpty ? "" : ", “\(label.printable)”"))" }
}
