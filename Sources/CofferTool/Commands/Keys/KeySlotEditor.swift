internal import Coffer
internal import CofferSystem

/// A vault whose key slots a command changes.
struct KeySlotEditor {
  private(set) var vault: VaultBackend
  let description: VaultDescription
  let configuration = BackendConfiguration.current()

  /// Selects the vault, without unlocking it. If `keyFile` is the recorded key file of the vault and does not exist,
  /// uses only the other sources of keys: the file may be lost, and the command creates it again.
  init(
    _ options: GlobalOptions, making keyFile: String? = nil, _ vaultOptions: VaultOptions = VaultOptions()
  ) throws {
    try self.init(options.openVault(requirement: "Only a vault has key slots", vaultOptions))
    guard let keyFile, let recorded = try configuration.recordedKeyFile(forVault: description.id),
      FileStatus(of: recorded) == nil,
      Path.name(of: keyFile) == Path.name(of: recorded),
      Path.isSameFile(Path.parent(of: try Path.absolute(keyFile)), Path.parent(of: recorded))
    else { return }
    let sources = configuration.credentials(additional: BackendOptions.prompts(configuration))
    vault = vault.with(credentials: sources.filter { $0.name != BackendConfiguration.recordedKeyFileSource })
    VaultNotes.register(vault)
  }

  /// Uses `vault` with the credentials that it has.
  init(_ vault: VaultBackend) throws(SecretError) {
    self.vault = vault
    description = try vault.description()
  }

  /// The slot whose id begins with `prefix`.
  func slot(_ prefix: String) throws -> VaultKeySlot {
    let found = description.keySlots.filter { $0.id.hasPrefix(prefix.lowercased()) }
    guard prefix.utf8.count >= 4, let slot = found.first(where: { $0.id == prefix }) ?? found.first,
      found.count == 1 || slot.id == prefix
    else {
      throw Failure.usage(
        "“\(prefix)” does not identify a key slot. Write 4 or more characters of its id, as secret key list prints it.")
    }
    return slot
  }

  /// Unlocks the vault, and opens `slots`: with the vault's own credential sources, the keys in `keyFiles`, and
  /// prompts. Throws `.locked` if a slot has no credential, and `.wrongKey` if an entered one does not open its slot.
  func open(_ slots: [VaultKeySlot], keyFiles: [String]) throws -> OpenedKeySlots {
    let keys = try keyFiles.map { path in
      // A path from a shell's process substitution.
      let isDescriptor = path.hasPrefix("/dev/fd/") || path.hasPrefix("/proc/self/fd/")
      let read =
        try isDescriptor
        ? VaultCredential.parse(ValueInput.read(file: path)) : KeyFile(path: path).credential()
      guard let read else { throw Failure(.noInput, "There is no key file \(path). Check the path.") }
      return VaultCredentialSource(path, read)
    }
    var opened = try vault.openKeySlots(with: keys)
    let missing = slots.filter { !opened.ids.contains($0.id) && $0.recipient == nil }
    if !missing.isEmpty && !configuration.canPrompt {
      throw SecretError(
        .locked,
        "A credential is required for each remaining key slot, and there is none for "
          + "\(missing.map(\.summary).joined(separator: ", ")).",
        advice: """
          Name its key file with --key-file, set COFFER_PASSPHRASE_FILE, or use a terminal. A slot whose credential is \
          lost can be removed without it: secret key remove ID…
          """)
    }
    for slot in missing where !opened.ids.contains(slot.id) {
      opened = try vault.openKeySlots(with: [try prompt(for: slot)], adding: opened)
      if !opened.ids.contains(slot.id) {
        throw SecretError(.wrongKey, "The entry does not open the key slot \(slot.summary).", advice: "Try again.")
      }
    }
    return opened
  }

  private func prompt(for slot: VaultKeySlot) throws -> VaultCredentialSource {
    switch slot.kind {
    case .passphrase:
      let text = try Terminal().readLine("Passphrase of the key slot \(slot.summary): ")
      return VaultCredentialSource("the terminal", .passphrase(text))
    case .key:
      let text = try Terminal().readLine("Key of the key slot \(slot.summary): ")
      return VaultCredentialSource("the terminal", .key(try RecoveryKey.parse(text)))
    default:
      throw SecretError(
        .locked, "The credential of the key slot \(slot.summary) cannot be entered on a terminal.",
        advice: "Use the program that added the slot, or remove it: secret key remove \(slot.shortID)")
    }
  }

  /// Call this directly after a change of the master key. Removes the former key that `unlock` kept.
  func noteNewMasterKey() {
    do throws(SecretError) { try KernelKeyring().forget(vault: description.id) } catch {}
    changed("The vault has a new master key. To print its pin: secret verify --vault \(vault.path.quotedForShell).")
  }

  /// Prints the pin after ``noteNewMasterKey()``. `removed` are the slots that were removed.
  func printNewPin(_ format: JSONOption, removed: [VaultKeySlot] = []) throws {
    let (pin, change) = (try vault.pin(), try vault.lastChange())
    let notices = try vault.lastNotices()
    // Whether this machine refuses the former master key from now on, at every path.
    let isRecorded = notices?.isDisjoint(with: [.unrecorded, .countsOnlyHere]) ?? false
    if notices?.contains(.countsOnlyHere) == true {
      note(
        """
        The vault counts only at this path, so the new master key was recorded only here: at another path, a copy that a \
        removed key opens may be accepted. To make it the vault everywhere: secret trust --everywhere --vault \
        \(vault.path.quotedForShell)
        """)
    } else if !isRecorded {
      note(
        """
        The new master key could not be recorded on this machine, which may accept an earlier copy of the vault that a \
        removed key opens. Make a private directory for the records, at XDG_STATE_HOME or ~/.local/state, and use the vault \
        once.
        """)
    }
    let report: JSONObject = [
      "newMasterKey": true, "pin": pin, "change": change, "recorded": isRecorded,
      "removed": removed.map(\.id),
    ]
    try format.print(report, or: "pin: \(pin)\n")
    if !removed.isEmpty { try noteUnchanged(since: change) }
  }

  /// Says which secrets a removed key could read and have not changed since.
  private func noteUnchanged(since change: Int) throws {
    let services = try vault.items(inService: nil).map(\.identifier.service)
    if services.isEmpty { return }
    inform(
      "Secrets that the removed key could read and that are unchanged since: \(services.count). Change each where it is used, and "
        + "then here. To list those that are left:")
    for service in Set(services).sorted() {
      inform(
        "  secret --vault \(vault.path.quotedForShell) -s \(service.quotedForShell) list --unchanged-since \(change)")
    }
  }

  /// A new passphrase, from two prompts or from a pipe as in `set`.
  func newPassphrase() throws -> SecretBytes {
    var wasTyped = false
    let passphrase = try ValueInput.read("new passphrase") {
      wasTyped = true
      return try PassphrasePrompt.new(for: vault.path)
    }
    if !wasTyped { try PassphrasePrompt.check(passphrase) }
    return passphrase
  }

  /// Records the file of a key that opens the vault. With `ifNone`, or if this is a copy of a vault in use, keeps a
  /// file that is recorded already, and returns `false` if it is another one.
  @discardableResult
  func record(keyFile path: String, ifNone: Bool = false) throws(SecretError) -> Bool {
    do throws(SecretError) {
      if let recorded = try configuration.recordedKeyFile(forVault: description.id),
        ifNone ? true : try vault.otherCopy() != nil
      {
        return Path.isSameFile(recorded, path)
      }
      try configuration.record(keyFile: path, forVault: description.id)
      return true
    } catch {
      throw SecretError(
        error.code,
        "The key in \(path) opens the vault now, but the file could not be recorded: \(error.reason)",
        advice: "Select it with COFFER_KEY_FILE.", effect: .changed)
    }
  }

  /// Adds slots for those of the recipients that have none. Throws if all of them have one.
  func addSlots(for recipients: [VaultRecipient], label: String) throws(SecretError) -> [VaultKeySlot] {
    let slots = try vault.addKeySlots(for: recipients, label: label)
    guard !slots.isEmpty else { throw SecretError(.alreadyExists, "There is a key slot for each recipient already.") }
    return slots
  }

  /// Adds a slot with the key in a file, which is created if it does not exist, or slots for the identities in it.
  func addKeyFile(_ path: String, label: String) throws -> (slots: [VaultKeySlot], isNew: Bool, path: String) {
    let file = try KeyFile(path: try Path.absolute(path))
    if let credential = try file.credential() {
      let recipients = try credential.recipients()
      let slots =
        recipients.isEmpty
        ? [try vault.addKeySlot(credential, label: label)] : try addSlots(for: recipients, label: label)
      return (slots, false, file.path)
    }
    if file.path == configuration.defaultKeyFile { try configuration.makeDirectory() }
    try GitWorkTree.requireIgnored(file.path)
    let key = VaultKey.generate()
    try file.create(key)
    do throws(SecretError) { return ([try vault.addKeySlot(.key(key), label: label)], true, file.path) } catch {
      throw file.failure(error, of: vault.with(credentials: [VaultCredentialSource("the new key", .key(key))]))
    }
  }
}
