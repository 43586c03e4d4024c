internal import ArgumentParser
internal import Coffer

/// The options of every command that works on a store. They may stand before the subcommand, too.
struct GlobalOptions: ParsableArguments {
  @Option(help: "The store to use: keyring or vault. Default: what `secret doctor` says.")
  var backend: BackendName?

  @Option(
    help: ArgumentHelp("The vault file to use; implies --backend vault.", valueName: "path"),
    completion: .file())
  var vault: String?

  @Option(
    name: [.customShort("s", allowingJoined: true), .long],
    help: "The service the names belong to. Default: COFFER_SERVICE, or else secret."
  )
  var service: String?
}

/// Whether to print JSON. Only commands with something to structure declare it.
struct JSONOption: ParsableArguments {
  @Flag(help: "Print JSON.")
  var json = false
}

enum BackendName: String, CaseIterable, ExpressibleByArgument {
  case keyring, vault

  var kind: CofferConfiguration.Kind {
    switch self {
    case .keyring: .keyring
    case .vault: .vault
    }
  }
}

extension GlobalOptions {
  static let defaultService = "secret"

  var serviceName: String { service ?? Environment.value("COFFER_SERVICE") ?? Self.defaultService }

  /// The secret that `name` stands for: a NAME is the account, verbatim.
  func identifier(_ name: String) throws(SecretError) -> SecretIdentifier {
    try SecretIdentifier(service: serviceName, account: name)
  }

  /// The backend that the options name, or `nil` where the configuration is to choose.
  func namedBackend() throws(Failure) -> CofferConfiguration.Kind? {
    guard vault != nil else { return backend?.kind }
    if backend == .keyring {
      throw .usage("--vault names a vault, and --backend the keyring. Give one of the two.")
    }
    return .vault
  }

  /// The store to work on. Opens nothing yet.
  func store() throws -> any SecretBackend {
    let configuration = CofferConfiguration.current()
    let kind = try namedBackend()
    if let vault { return configuration.vault(at: vault, extraSources: Self.prompts(configuration)) }
    return try configuration.backend(kind, extraSources: Self.prompts(configuration))
  }

  /// The store, where only a vault will do. `purpose` completes "Only a vault can be …".
  func vaultStore(toBe purpose: String) throws -> VaultBackend {
    guard let vault = try store() as? VaultBackend else {
      throw SecretError(
        .unsupported,
        "Only a vault can be \(purpose), and the store in use is the keyring.",
        advice: "Name a vault with --vault PATH or --backend vault."
      )
    }
    return vault
  }

  private static func prompts(_ configuration: CofferConfiguration) -> [any VaultCredentialSource] {
    configuration.mayPrompt ? [PassphrasePrompt()] : []
  }
}
