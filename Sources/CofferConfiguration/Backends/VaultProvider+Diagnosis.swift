package import CofferCore
internal import CofferSystem
internal import CofferVault
internal import FoundationEssentials
internal import Glibc
internal import Synchronization

extension SecretError.Code {
  /// A vault has only one key slot.
  package static let singleKeySlot = SecretError.Code("singleKeySlot")
}

extension VaultProvider {
  func examine(_ diagnosis: inout BackendDiagnosis) throws(SecretError) {
    diagnosis.subject = "vault"
    let path = diagnosis.place ?? diagnosis.configuration.vaultPath
    let description = try VaultBackend.describe(path: path)
    let kinds = description.keySlots.map {
      $0.kind.map { "a \($0)" } ?? "a credential of an unknown kind"
    }.joined(separator: ", or ")
    let isPrivate = FileStatus(of: path).map { $0.mode & 0o044 == 0 } ?? true
    if isPrivate {
      diagnosis.ok("\(path) exists, only you can read it, and it opens with \(kinds)")
    } else {
      diagnosis.note(
        "\(path) exists, other users can read it, and it opens with \(kinds)", nil,
        "Its content is encrypted. Run chmod 600 on it to change secrets.")
    }

    diagnosis.subject = "key"
    let used = UsedSource()
    let sources = diagnosis.configuration.credentials().map { used.recording($0) }
    do throws(SecretError) {
      let vault = diagnosis.configuration.vault(at: path, credentials: sources)
      try vault.unlock()
      diagnosis.ok("the vault was opened with the credential from \(used.name ?? "no source")")
      try examineCondition(vault, &diagnosis)
      try examineClock(vault, &diagnosis)
    } catch {
      let hasPassphrase = description.keySlots.contains { $0.kind == .passphrase }
      guard error.code == .locked, hasPassphrase, diagnosis.canAsk else { throw error }
      diagnosis.ok("no credential source opens the vault, so commands will prompt for the passphrase")
    }
    if description.keySlots.count == 1 {
      diagnosis.note(
        "the vault has only one key slot; if its credential is lost, the secrets are lost", .singleKeySlot,
        "Add a second key slot.")
    }
  }

  /// How the vault is held to what was seen of it before, and what is damaged although the vault can be used.
  private func examineCondition(
    _ vault: VaultBackend, _ diagnosis: inout BackendDiagnosis
  ) throws(SecretError) {
    let condition = try vault.condition()
    let subject = diagnosis.subject
    diagnosis.subject = "trust"
    switch condition.trustPolicy {
    case _ where condition.isUnrecorded:
      diagnosis.note(
        "what was seen of the vault cannot be recorded, so a later run may not notice an older copy", nil,
        "Make a private directory for it, at XDG_STATE_HOME or ~/.local/state.")
    case .strict: diagnosis.ok("the policy is strict: an older copy of the vault is refused")
    case .versioned:
      diagnosis.ok(
        "the policy is versioned: an older copy of the vault is accepted, but not another vault or a former key"
      )
    }
    if condition.isRecordDamaged {
      diagnosis.note("one half of the record of what was seen of the vault was damaged, and is repaired")
    }
    diagnosis.subject = "vault"
    if condition.isRecovered {
      diagnosis.note(
        "one of the two commit slots is damaged, so the last change may be missing", nil,
        "Check what you stored last. The next change repairs the slot.")
    }
    if !condition.isWritable { diagnosis.note("the vault can only be read, because its file is not yours") }
    diagnosis.subject = subject
  }

  /// Whether a secret has expired depends on the clock. Nothing else does.
  private func examineClock(_ vault: VaultBackend, _ diagnosis: inout BackendDiagnosis) throws(SecretError) {
    let last = try vault.items(inService: nil).compactMap(\.metadata.modified).max()
    let (subject, now) = (diagnosis.subject, Date())
    diagnosis.subject = "clock"
    if let last, last > now {
      diagnosis.note(
        "the time is \(now.formatted(.iso8601)), but the vault was changed at \(last.formatted(.iso8601))",
        nil,
        "Set the clock, which determines the secrets that have expired.")
    } else {
      diagnosis.ok("the time is later than the vault's last change")
    }
    diagnosis.subject = subject
  }

  func examineSurroundings(_ diagnosis: inout BackendDiagnosis) {
    let path = diagnosis.place ?? diagnosis.configuration.vaultPath
    let directory = Path.parent(of: path)
    guard let status = FileStatus(of: directory) else { return }  // `examine` has reported it
    examineDirectory(directory, status, of: path, &diagnosis)
    examineKeyFile(besides: directory, of: path, &diagnosis)
    examineVariables(&diagnosis)

    diagnosis.subject = "kernel keyring"
    do throws(SecretError) {
      try KernelKeyring().requireAvailable()
      diagnosis.ok("it can keep the vault unlocked")
    } catch {
      diagnosis.note("it cannot keep the vault unlocked: \(error.reason)", error.code, error.advice)
    }
  }

  private func examineDirectory(
    _ directory: String, _ status: FileStatus, of path: String, _ diagnosis: inout BackendDiagnosis
  ) {
    diagnosis.subject = "directory"
    if status.mode & 0o022 != 0 && status.mode & UInt32(S_ISVTX) == 0 {
      diagnosis.bad(
        "other users can write to \(directory), and replace the vault", .denied,
        "Run chmod go-w \(directory).")
    } else if status.owner != geteuid() && status.owner != 0 {
      diagnosis.note(
        "\(directory) belongs to another user, who can remove the vault", nil,
        "Move the vault to a directory of your own.")
    } else {
      diagnosis.ok("only you can write to \(directory)")
    }
    if let count = unfinishedCopies(of: path, in: directory), count > 0 {
      diagnosis.note(
        "\(directory) contains unfinished copies of the vault, from interrupted writes: \(count)", nil,
        "They hold nothing that the vault lacks. The next rewrite removes them.")
    }
    switch FileSystemKind(of: path) ?? FileSystemKind(of: directory) {
    case .memory?:
      diagnosis.note(
        "\(directory) is in memory, so a restart removes the vault", nil, "Move the vault to a disk.")
    case .network(let name)?:
      diagnosis.note(
        "\(directory) is on a network file system (\(name)), whose server determines locking and the order of writes",
        nil, "Move the vault to a local disk, unless several machines use it.")
    case .overlay?:
      diagnosis.note(
        "\(directory) is in a container's own layer, and is removed with the container", nil,
        "Use a volume for the vault.")
    case .other?: diagnosis.ok("\(directory) is on a disk")
    case nil: break
    }
  }

  /// The number of files that interrupted rewrites of the vault have left beside it.
  private func unfinishedCopies(of path: String, in directory: String) -> Int? {
    do throws(SystemCallError) {
      return try Path.names(inDirectory: directory).count { NewFile.isTemporaryName($0, of: name(of: path)) }
    } catch { return nil }
  }

  private func name(of path: String) -> String {
    path.split(separator: "/").last.map(String.init) ?? path
  }

  private func examineKeyFile(
    besides directory: String, of path: String, _ diagnosis: inout BackendDiagnosis
  ) {
    diagnosis.subject = "key file"
    let configuration = diagnosis.configuration
    let recorded: String?
    do throws(SecretError) {
      recorded = try configuration.recordedKeyFile(forVault: try VaultBackend.describe(path: path).id)
    } catch { return }  // `examine` has reported it
    guard let file = configuration.environment.nonEmpty("COFFER_KEY_FILE") ?? recorded,
      let status = FileStatus(of: file)
    else { return }
    if let exposure = FileExposure(of: status) {
      diagnosis.bad("\(file) \(exposure.predicate)", .denied, exposure.advice)
    } else if Path.isSameFile(Path.parent(of: file), directory) {
      diagnosis.note(
        "\(file) is in the vault's directory, so that a copy of the directory contains both", nil,
        "Move one of them, and set COFFER_KEY_FILE.")
    } else {
      diagnosis.ok("only you can read \(file)")
    }
  }

  private func examineVariables(_ diagnosis: inout BackendDiagnosis) {
    diagnosis.subject = "environment"
    let set = diagnosis.configuration.set(of: CofferConfiguration.keyVariables)
    if set.count > 1 {
      diagnosis.note(
        "several variables are set, and are tried in this order: \(set.joined(separator: ", "))", nil,
        "Unset all but one.")
    } else if set == ["COFFER_KEY"] {
      diagnosis.note(
        "the key is in COFFER_KEY, which every process of this user can read in /proc", nil,
        "This is usual in CI; otherwise use COFFER_KEY_FILE.")
    }
  }
}

/// The name of the credential source that returned a credential last. Thread-safe.
private final class UsedSource: Sendable {
  private let state = Mutex<String?>(nil)
  var name: String? { state.withLock { $0 } }

  func recording(_ source: any VaultCredentialSource) -> any VaultCredentialSource {
    Recording(source: source, used: self)
  }

  private struct Recording: VaultCredentialSource {
    let source: any VaultCredentialSource
    let used: UsedSource
    var name: String { source.name }
    var mayPrompt: Bool { source.mayPrompt }

    func credential(for vault: VaultDescription) throws(SecretError) -> VaultCredential? {
      guard let credential = try source.credential(for: vault) else { return nil }
      used.state.withLock { $0 = source.name }
      return credential
    }
  }
}
