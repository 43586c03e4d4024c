internal import Coffer
internal import FoundationEssentials
internal import Glibc

/// What `doctor` finds out. The store comes first: each step of it needs the one before, so it ends at the
/// first that is bad. What surrounds it is looked at in any case.
struct Diagnosis {
  struct Finding: Encodable {
    /// Only what is `bad` keeps the store from working.
    enum Grade: String { case ok, note, bad }

    let subject: String
    let grade: Grade
    let status: ExitStatus
    let text: String
    var advice: String?

    var isBad: Bool { grade == .bad }

    /// As a person reads it. Paths may hold anything.
    var lines: String {
      let mark =
        switch grade {
        case .ok: "ok  "
        case .note: "note"
        case .bad: "BAD "
        }
      let line = "\(mark) \(subject): \(text.printable)\n"
      guard let advice else { return line }
      return line + "     → \(advice.printable)\n"
    }

    private enum CodingKeys: CodingKey { case subject, ok, grade, status, text, advice }
    func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encode(subject, forKey: .subject)
      try container.encode(!isBad, forKey: .ok)
      try container.encode(grade.rawValue, forKey: .grade)
      try container.encode(status.rawValue, forKey: .status)
      try container.encode(text, forKey: .text)
      try container.encodeIfPresent(advice, forKey: .advice)
    }
  }

  private static let kept = "the kernel keeps for a while, from secret unlock"

  private(set) var findings: [Finding] = []
  let configuration: CofferConfiguration
  /// What is being looked at.
  var subject = "backend"

  init(_ options: GlobalOptions, _ configuration: CofferConfiguration) {
    self.configuration = configuration
    var kind = CofferConfiguration.Kind.vault
    let path = options.vault ?? configuration.vaultPath
    do {
      kind = try examineChoice(options)
      switch kind {
      case .vault: try examineVault(path)
      case .keyring: try examineKeyring(options)
      }
    } catch let error as SecretError {
      bad(ExitStatus(error.code), error.reason, error.advice)
    } catch let failure as Failure {
      bad(failure.status, failure.message)
    } catch {
      bad(.internalError, "An unexpected error came up.")
    }
    if kind == .vault { examineSurroundings(ofVault: path) }
    examineProcess()
    examineEditing()
    examineVariables(kind)
  }

  private mutating func examineChoice(_ options: GlobalOptions) throws -> CofferConfiguration.Kind {
    if let named = try options.namedBackend() {
      good("\(named.rawValue), as an option says")
      return named
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
      default: "something this version does not know"
      }
    }
    good("\(path) is there, is yours, and opens with \(slots.joined(separator: ", or "))")

    subject = "key"
    let record = RecordedSource.Record()
    let sources = configuration.credentialSources().map { RecordedSource(source: $0, record: record) }
    do throws(SecretError) {
      let vault = configuration.vault(at: path, credentials: sources)
      try vault.unlock()
      // A master key that the kernel keeps is no credential, and the one source that gives none.
      good("the vault was opened with what \(record.name.map { "came from \($0)" } ?? Self.kept)")
      try examineClock(vault)
    } catch {
      guard error.code == .locked, description.hasPassphrase, configuration.mayPrompt, Terminal.isThere else {
        throw error
      }
      good("nothing here opens the vault, so the passphrase will be asked for on the terminal")
    }
    if description.keySlots.count == 1 {
      remark(
        "the vault has one key slot: with what opens it, everything is lost",
        "secret key add --recovery"
      )
    }
  }

  /// Nothing but expiry dates depends on the clock.
  private mutating func examineClock(_ vault: VaultBackend) throws(SecretError) {
    let last = try vault.items(inService: nil).compactMap(\.metadata.modified).max()
    subject = "clock"
    if let last, last > Date() {
      remark(
        "it is \(Date().formatted(.iso8601)) here, and the vault was changed on \(last.formatted(.iso8601))",
        "Set the clock: what has expired is judged by it."
      )
    } else {
      good("it is not behind the vault's last change")
    }
    subject = "key"
  }

  private mutating func examineKeyring(_ options: GlobalOptions) throws {
    #if Keyring
    subject = "bus"
    let environment = Environment.all
    let status = KeyringBackend.probe(environment: environment)
    guard status.isBusReachable else {
      throw SecretError(
        .unavailable,
        status.problem?.reason ?? "There is no session bus, so no keyring can be reached.",
        advice: "Use a vault instead: secret init"
      )
    }
    good("\(status.busAddress ?? "the session bus") answers")

    subject = "keyring"
    if let problem = status.problem { throw problem }
    guard status.isAvailable else {
      throw SecretError(
        .unavailable,
        "No keyring runs on the session bus, and none can be started there.",
        advice: "Install gnome-keyring or another Secret Service, or use a vault instead: secret init"
      )
    }
    good(status.isServiceRunning ? "a keyring runs" : "no keyring runs yet, and one can be started")
    if let collection = status.defaultCollection {
      if status.isLocked == true {
        let asks =
          status.mayPrompt ? "it will ask for its password" : "nobody may be asked for its password"
        guard status.mayPrompt else {
          throw SecretError(
            .locked,
            "The collection “\(collection)” is locked, and \(asks).",
            advice: "Unlock it from the desktop, or use a vault instead: secret init"
          )
        }
        remark("the collection “\(collection)” is locked; \(asks)", "Unlock it, or answer when it asks.")
      } else {
        good("the collection “\(collection)” is open")
      }
    } else if status.isServiceRunning {
      remark("there is no default collection yet", "It is made by the first secret set.")
    }
    if status.isServiceRunning, status.isLocked != true {
      let count = try configuration.backend(.keyring).items(inService: options.serviceName).count
      good("it answers, and holds \(count) secrets of the service “\(options.serviceName)”")
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
