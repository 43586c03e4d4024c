internal import Coffer
internal import CofferConfiguration
internal import CofferSystem

/// An unlocked vault whose key slots a command changes, with the credentials for them.
struct KeySlotEditor {
  let vault: VaultBackend
  let description: VaultDescription
  let configuration: CofferConfiguration
  private let keyFiles: [String]

  /// Unlocks the vault. `keyFiles` are key files of further slots.
  init(_ options: BackendOptions, keyFiles: [String] = []) throws {
    let path = try options.openVault(requirement: "Only a vault has key slots").path
    configuration = CofferConfiguration.current()
    self.keyFiles = keyFiles
    let prompt = RememberedPrompt()
    vault = configuration.vault(at: path, additionalCredentials: configuration.mayPrompt ? [prompt] : [])
    VaultNotes.register(vault)
    try vault.unlock()
    prompt.stopPrompting()
    description = try VaultBackend.describe(path: path)
  }

  /// Uses a vault with other credentials.
  init(vault: VaultBackend, description: VaultDescription, configuration: CofferConfiguration) {
    VaultNotes.register(vault)
    self.vault = vault
    self.description = description
    self.configuration = configuration
    keyFiles = []
  }

  /// The slot whose id begins with `prefix`.
  func slot(_ prefix: String) throws -> VaultKeySlot {
    let found = description.keySlots.filter { $0.id.hasPrefix(prefix.lowercased()) }
    guard prefix.utf8.count >= 4, let slot = found.first, found.count == 1 else {
      throw Failure.usage(
        "“\(prefix)” does not identify a key slot. Write 4 or more characters of its id, as secret key list prints it."
      )
    }
    return slot
  }

  /// The credentials of `slots`, beyond the vault's own credential sources: from the key files and from
  /// prompts. Throws `.locked` if a slot has no credential, and `.wrongKey` if an entered one does not open
  /// its slot.
  func credentials(of slots: [VaultKeySlot]) throws -> [any VaultCredentialSource] {
    var sources: [any VaultCredentialSource] = []
    for path in keyFiles {
      guard let key = try KeyFile(path: path).key() else {
        throw Failure(.noInput, "There is no key file \(path). Check the path.")
      }
      sources.append(GivenCredential(key: key, named: path))
    }
    var opened = try vault.keySlots(openedBy: sources)
    let missing = slots.filter { !opened.contains($0.id) }
    if !missing.isEmpty && !configuration.canPrompt {
      throw SecretError(
        .locked,
        "A credential is required for each remaining key slot, and there is none for "
          + "\(missing.map(\.summary).joined(separator: ", ")). Nothing was changed.",
        advice: """
          Name its key file with --key-file, set COFFER_PASSPHRASE_FILE, or use a terminal. A slot whose credential is \
          lost can be removed without it: secret key remove ID…
          """
      )
    }
    for slot in missing where !opened.contains(slot.id) {
      sources.append(try prompt(for: slot))
      opened = try vault.keySlots(openedBy: sources)
      if !opened.contains(slot.id) {
        throw SecretError(
          .wrongKey,
          "The entry does not open the key slot \(slot.summary), and nothing was changed.",
          advice: "Try again."
        )
      }
    }
    return sources
  }

  private func prompt(for slot: VaultKeySlot) throws -> any VaultCredentialSource {
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
        "The key slot \(slot.summary) was created by a later version.",
        advice: "Use that version."
      )
    }
  }

  /// Removes the master key that `unlock` kept, which no longer opens the vault.
  func forgetKeptKey() {
    do throws(SecretError) { try KernelKeyring().forget(vault: description.id) } catch {}
  }

  /// A new passphrase, from two prompts or from a pipe as in `set`.
  func newPassphrase() throws -> SecretBytes {
    let input = ValueInput()
    let passphrase: SecretBytes
    if input.isPrompt {
      guard configuration.canPrompt else {
        throw Failure.usage("There is no new passphrase, and a prompt is not possible. Use a pipe.")
      }
      passphrase = try PassphrasePrompt.new(for: vault.path)
    } else {
      passphrase = try input.read(for: "")
    }
    if passphrase.isEmpty {
      throw Failure.usage("The new passphrase is empty, and nothing was changed. Use a prompt or a pipe.")
    }
    return passphrase
  }

  /// Adds a slot with the key in a file, which is created if it does not exist.
  func addKeyFile(_ path: String, label: String) throws -> (slot: VaultKeySlot, isNew: Bool, path: String) {
    let file = KeyFile(path: try Path.absolute(path))
    if let key = try file.key() { return (try vault.addKeySlot(.key(key), label: label), false, file.path) }
    let key = VaultKey.generate()
    try file.create(key)
    do throws(SecretError) {
      return (try vault.addKeySlot(.key(key.copy()), label: label), true, file.path)
    } catch {
      let probe = configuration.vault(
        at: vault.path, credentials: [GivenCredential(key: key.copy(), named: "the new key")])
      throw file.failure(error, of: probe)
    }
  }
}

extension VaultKeySlot {
  /// The part of the id that commands print.
  var shortID: String { String(id.prefix(12)) }

  var kindName: String { kind?.description ?? "unknown" }

  /// The slot in a message. Escapes the label, which anyone can choose.
  var summary: String { "\(shortID) (\(kindName)\(label.isEmpty ? "" : ", “\(label.printable)”"))" }
}
