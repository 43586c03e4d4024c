internal import Coffer
internal import FoundationEssentials
internal import Glibc

/// The findings of `doctor`. The examination of the backend ends at the first bad finding, because each step
/// requires the one before. The surroundings are examined in any case.
struct Diagnosis {
  private(set) var findings: [Finding] = []
  let configuration: CofferConfiguration
  /// The subject of the next finding.
  var subject = "backend"

  init(_ options: GlobalOptions, _ configuration: CofferConfiguration) {
    self.configuration = configuration
    var kind = CofferConfiguration.Kind.vault
    let path = options.backend.vault ?? configuration.vaultPath
    do {
      kind = try examineChoice(options.backend)
      switch kind {
      case .vault: try examineVault(path)
      case .keyring: try examineKeyring(options)
      }
    } catch let error as SecretError {
      bad(ExitStatus(error.code), error.reason, Advice.advice(for: error))
    } catch let failure as Failure {
      bad(failure.status, failure.message)
    } catch {
      bad(.internalError, "There was an unexpected error.")
    }
    if kind == .vault { examineSurroundings(ofVault: path) }
    examineProcess()
    examineEditing()
    examineVariables(kind)
  }

  private mutating func examineChoice(_ options: BackendOptions) throws -> CofferConfiguration.Kind {
    if let selected = try options.selected() {
      good("\(selected.rawValue), selected by an option")
      return selected
    }
    let choice = try configuration.choice()
    good("\(choice.kind.rawValue). \(choice.reason)")
    return choice.kind
  }

  private mutating func examineVault(_ path: String) throws {
    subject = "vault"
    let description = try VaultBackend.describe(path: path)
    let slots = description.keySlots.map { slot in
      switch slot.kind {
      case .passphrase: "a passphrase"
      case .key: "a key"
      default: "a credential of an unknown kind"
      }
    }
    good("\(path) exists, only you can read it, and it opens with \(slots.joined(separator: ", or "))")

    subject = "key"
    let record = RecordingSource.Record()
    let sources = configuration.credentialSources().map { RecordingSource(source: $0, record: record) }
    do throws(SecretError) {
      let vault = configuration.vault(at: path, credentials: sources)
      try vault.unlock()
      // The kernel keyring returns a master key and no credential, so it is not recorded.
      good(
        record.name.map { "the vault was opened with the credential from \($0)" }
          ?? "the vault was opened with the master key that secret unlock kept")
      try examineClock(vault)
    } catch {
      guard error.code == .locked, description.hasPassphrase, configuration.canPrompt
      else {
        throw error
      }
      good("no credential source opens the vault, so commands will prompt for the passphrase")
    }
    if description.keySlots.count == 1 {
      remark(
        "the vault has only one key slot; if its credential is lost, the secrets are lost",
        "secret key add --recovery")
    }
  }

  /// Only expiry depends on the clock.
  private mutating func examineClock(_ vault: VaultBackend) throws(SecretError) {
    let last = try vault.items(inService: nil).compactMap(\.metadata.modified).max()
    subject = "clock"
    if let last, last > Date() {
      remark(
        "the time is \(Date().formatted(.iso8601)), but the vault was changed at \(last.formatted(.iso8601))",
        "Set the clock, which determines the secrets that have expired."
      )
    } else {
      good("the time is later than the vault's last change")
    }
    subject = "key"
  }

  private mutating func examineKeyring(_ options: GlobalOptions) throws {
    #if Keyring
    subject = "bus"
    let status = KeyringBackend.probe(environment: Environment.withoutKeys)
    guard status.isBusReachable else {
      throw status.problem
        ?? SecretError(.unavailable, "There is no session bus, so no keyring can be reached.")
    }
    good("\(status.busAddress ?? "the session bus") responds")

    subject = "keyring"
    if let problem = status.problem { throw problem }
    guard status.isAvailable else {
      throw SecretError(
        .unavailable,
        "No keyring runs on the session bus, and none can be started.",
        advice: "Install gnome-keyring or another Secret Service."
      )
    }
    good(status.isServiceRunning ? "a keyring is running" : "a keyring is not running, but can be started")
    if let collection = status.defaultCollection {
      if status.isLocked != true {
        good("the collection “\(collection)” is unlocked")
      } else if status.mayPrompt {
        remark(
          "the collection “\(collection)” is locked; the keyring will prompt",
          "Unlock it, or answer the prompt.")
      } else {
        throw SecretError(
          .locked, "The collection “\(collection)” is locked, and a prompt is not possible.",
          advice: "Unlock it in the desktop session. To use a vault instead: secret init")
      }
    } else if status.isServiceRunning {
      remark("there is no default collection", "The first secret set creates it.")
    }
    if status.isServiceRunning, status.isLocked != true {
      let count = try configuration.backend(.keyring).items(inService: options.serviceName).count
      good("the keyring responds, and has \(count) secrets in the service “\(options.serviceName)”")
    }
    #else
    _ = try configuration.backend(.keyring)
    #endif
  }

  mutating func good(_ text: String) {
    findings.append(Finding(subject: subject, grade: .ok, status: .done, text: text))
  }

  mutating func remark(_ text: String, _ advice: String? = nil) {
    findings.append(Finding(subject: subject, grade: .note, status: .done, text: text, advice: advice))
  }

  mutating func bad(_ status: ExitStatus, _ text: String, _ advice: String? = nil) {
    findings.append(Finding(subject: subject, grade: .bad, status: status, text: text, advice: advice))
  }
}
