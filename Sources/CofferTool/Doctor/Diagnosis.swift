internal import Coffer
internal import FoundationEssentials

/// The findings of `doctor`: those about the backend, and those about what the tool itself uses.
struct Diagnosis {
  let configuration = BackendConfiguration.current()
  /// The service whose secrets are counted.
  private(set) var service = SecretReference.defaultService
  private(set) var findings: [Finding] = []

  init(_ options: GlobalOptions) {
    do {
      service = try options.serviceName
      let selected = try options.selection()
      let source = try options.isGiven ? "an option" : Project.current()?.path ?? ""
      examine(try choose(selected, by: source))
    } catch let error as SecretError {
      add("backend", error)
    } catch {
      if let failure = Failure(error) { add(.bad, "backend", failure.message, status: failure.status) }
    }
    examineMemory()
    examineFiles()
    if let mistaken = Environment.value("SECRET_BACKEND") {
      add(
        .note, "environment", "SECRET_BACKEND is \(mistaken), but only libsecret uses that variable",
        "Use COFFER_BACKEND.")
    }
  }

  /// The backend and the store to examine: those of an option or of the project's file, or those that the configuration
  /// chooses. Throws for a backend that the tool does not use, such as memory.
  private mutating func choose(
    _ selected: BackendSelection?, by source: String
  ) throws(SecretError) -> BackendSelection {
    if let selected {
      _ = try configuration.provider(of: selected.name)
      add(.ok, "backend", "\(selected.name), selected by \(source)")
      return selected
    }
    let choice = try configuration.choice()
    _ = try configuration.provider(of: choice.selection.name)
    add(.ok, "backend", "\(choice.selection.name). \(choice.reason)")
    return choice.selection
  }

  private mutating func examine(_ selection: BackendSelection) {
    switch selection.name {
    case .vault: examineVault(selection.place ?? configuration.vaultPath)
    #if Keyring
    case .keyring: examineKeyring(selection.place)
    #endif
    default: examineContents(of: selection)
    }
    for variable in configuration.unusedVariables(with: selection) {
      add(.note, "environment", "\(variable) has no effect with the backend \(selection)", "Unset it.")
    }
  }

  /// Counts the secrets of the service in a backend.
  mutating func examineContents(of selection: BackendSelection) {
    let name = selection.name.rawValue
    do throws(SecretError) {
      let backend = try configuration.backend(selection.name, at: selection.place)
      let items = try UnreadableItems.leaveOut(of: backend).items(inService: service)
      add(.ok, name, "the \(name) responds, and has \(items.count) secrets in the service “\(service)”")
      examineExpiry(of: items)
    } catch {
      add(name, error)
    }
  }

  /// Names the secrets of the service that have expired or expire soon.
  mutating func examineExpiry(of items: [SecretItem]) {
    let now = Date()
    for (state, what) in [(Expiry.State.expired, "have expired"), (.soon, "expire within 14 days")] {
      let found = items.filter { Expiry.state(of: $0.metadata, now: now) == state }
      if found.isEmpty { continue }
      let list = found.map { "“\($0.identifier.account)”" }.listed(most: 10)
      add(.note, "expiry", "in the service “\(service)”, these \(what): \(list)", "Store new values.")
    }
  }

  private mutating func examineMemory() {
    if SecretBytes.isMemoryLocked {
      add(.ok, "memory", "values are locked in memory, and core files are disabled")
    } else {
      add(
        .note, "memory", "values cannot be locked in memory, so they may be written to swap space",
        "Raise the limit with ulimit -l, or encrypt the swap space.")
    }
  }

  private mutating func examineFiles() {
    if ValueFiles.memoryPlaces.isEmpty {
      add(
        .note, "files", "there is no file system in memory at XDG_RUNTIME_DIR or /dev/shm",
        "Use secret set and run --set, or secret edit --insecure-storage.")
    }
    for command in ValueFiles.Command.allCases {
      for directory in ValueFiles.leftBehind(by: command) {
        add(
          .note, "files", "an interrupted secret \(command) left a value in \(directory)",
          "Check whether you need it, and remove the directory.")
      }
    }
  }

  mutating func add(
    _ grade: Finding.Grade, _ subject: String, _ text: String, _ advice: String? = nil,
    status: ExitStatus = .done
  ) {
    findings.append(
      Finding(
        subject: subject, ok: grade != .bad, grade: grade, status: status, text: text.withoutKeys,
        advice: advice?.withoutKeys))
  }

  mutating func add(_ subject: String, _ error: SecretError) {
    add(.bad, subject, error.reason, error.toolAdvice, status: ExitStatus(error.code))
  }
}
