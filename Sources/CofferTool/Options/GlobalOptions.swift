internal import ArgumentParser
internal import Coffer

/// The options of every command that uses a backend. ``ArgumentOrder`` also accepts them before the command.
struct GlobalOptions: StoreOptions {
  @Option(help: BackendOptions.backendHelp) var backend: BackendSelection?
  @Option(path: BackendOptions.vaultHelp) var vault: String?
  @Option(help: BackendOptions.collectionHelp) var collection: String?
  @Flag(help: QuietOption.help) var quiet = false
  @Option(help: "How old what is read of a vault at a URL may be, such as 5m. Default: its engine is always asked.")
  var maxAge: String?
  @Flag(help: "Do not ask the engine of a vault at a URL: use what this machine has seen last.") var offline = false

  @Option(
    name: [.customShort("s", allowingJoined: true), .long],
    help:
      "The service that the names belong to. Default: COFFER_SERVICE, or else \(SecretReference.defaultService).",
    completion: CompletedValue.services.kind)
  var service: String?

  func validate() throws {
    QuietOption.apply(quiet)
    if service?.isEmpty == true { throw ValidationError("The service of --service is empty. Name one.") }
    if let maxAge, TimeText.span(maxAge) == nil {
      throw ValidationError("“\(maxAge)” is not a span of time for --max-age. Write one such as 30s, 5m or 1h.")
    }
  }

  /// The project, if neither an option nor a variable selects the store.
  private func followedProject() throws(SecretError) -> Project? {
    let variables = ["COFFER_BACKEND", "COFFER_VAULT"]
    if isGiven || variables.contains(where: { Environment.value($0) != nil }) { return nil }
    return try Project.current()
  }

  /// The project whose variables a command uses, or `nil` if an option selects the store or if there is no project.
  func project() throws(SecretError) -> Project? {
    guard !isGiven, let project = try Project.current() else { return nil }
    try project.requireAllowed(usingVault: followedProject() != nil)
    return project
  }

  /// These options with the service of `project`, unless an option or a variable names one.
  func following(_ project: Project?) -> GlobalOptions {
    var options = self
    options.service = service ?? Environment.value("COFFER_SERVICE") ?? project?.file.service
    return options
  }

  /// The service that an option, a variable, or the project's file names, in this order.
  var serviceName: String {
    get throws(SecretError) {
      if let name = service ?? Environment.value("COFFER_SERVICE") { return name }
      guard let project = try followedProject(), let name = project.file.service else {
        return SecretReference.defaultService
      }
      try project.requireAllowed()
      return name
    }
  }

  /// The store that an option or the project's file selects, or `nil` if the configuration decides.
  func selection() throws -> BackendSelection? {
    if let selected = try selected() { return selected }
    guard let project = try followedProject(), let vault = project.vault else { return nil }
    try project.requireAllowed()
    return BackendSelection(.vault, at: vault)
  }

  /// What a command does with a backend.
  enum Purpose { case read, examine, change }

  /// Returns the backend, without opening it. Only to read, `--max-age` and `--offline` may be given: what is decided
  /// before a change must not be decided on an old state.
  func open(_ options: VaultOptions = VaultOptions(), to purpose: Purpose = .read) throws -> any SecretBackend {
    if purpose != .read && (offline || maxAge != nil) {
      throw Failure.usage("--max-age and --offline are only for commands that read secrets. Leave them out.")
    }
    var options = options
    if let seconds = maxAge.flatMap(TimeText.span) { options.maximumAge = .seconds(seconds) }
    options.isOffline = offline
    options.maximumAgeInProcess = .seconds(1)
    let backend = try BackendOptions.open(selection(), options: options)
    if purpose == .change && backend.features.contains(.transactions) { willChange() }
    return backend
  }

  /// Returns the backend, without opening it. Throws `.unsupported` if it keeps no earlier versions.
  func openVersioned(to purpose: Purpose = .read) throws -> any SecretBackend {
    let backend = try open(to: purpose)
    guard backend.features.contains(.history) else {
      throw SecretError(
        .unsupported, "The keyring keeps no earlier versions of secrets; a vault does.",
        advice: "To move to a vault: secret copy --from keyring --to vault")
    }
    return backend
  }

  /// Returns the vault, without opening it. Throws `.unsupported` if another backend is selected; `requirement` is the
  /// clause for the message, such as "Only a vault can be locked".
  func openVault(
    requirement: String, _ options: VaultOptions = VaultOptions(), to purpose: Purpose = .change
  ) throws -> VaultBackend {
    guard let vault = try open(options, to: purpose) as? VaultBackend else {
      throw SecretError(
        .unsupported, "\(requirement), and the selected backend is not a vault.",
        advice: "Select a vault with --vault PATH or --backend vault.")
    }
    return vault
  }

  /// The identifier to which the reference `name` refers. A name that is not a reference, or is an argument after `--`,
  /// is the account of a secret in the selected service, verbatim.
  func identifier(_ name: String) throws -> SecretIdentifier {
    if !VerbatimNames.contain(name), let identifier = try SecretReference.identifier(name) { return identifier }
    return try SecretIdentifier(service: serviceName, account: name)
  }

  /// The ``identifier(_:)`` of a secret to store. Throws a usage failure if the name would be taken for a reference.
  func newIdentifier(_ name: String) throws -> SecretIdentifier {
    let identifier = try identifier(name)
    guard !identifier.account.utf8.starts(with: SecretReference.scheme.utf8) else {
      throw Failure.usage(
        "A name that begins with \(SecretReference.scheme) would be taken for a reference.", advice: "Choose another.")
    }
    return identifier
  }

  /// The identifiers of the secrets called `names`, each once.
  func identifiers(_ names: [String]) throws -> [SecretIdentifier] {
    var seen: Set<SecretIdentifier> = []
    return try names.map(identifier).filter { seen.insert($0).inserted }
  }
}
