internal import ArgumentParser
internal import Coffer
internal import Synchronization

/// The options that select a backend.
///
/// Each type with these options declares them itself, with the same texts. A common option group would be slow: for
/// each type of group, the argument parser searches the whole program several times.
protocol StoreOptions: ParsableArguments {
  var backend: BackendSelection? { get }
  var vault: String? { get }
  var collection: String? { get }
}

/// The options of commands that implement another program's protocol, which determines the service.
struct BackendOptions: StoreOptions {
  static let backendHelp: ArgumentHelp = "The backend to use. Default: the one that `secret doctor` reports."
  static let vaultHelp = "The vault file or URL to use, like --backend vault:PATH."
  static let collectionHelp = ArgumentHelp(
    "The keyring's collection to use, by its alias or label, like --backend keyring:NAME.", valueName: "name")

  @Option(help: Self.backendHelp) var backend: BackendSelection?
  @Option(path: Self.vaultHelp) var vault: String?
  @Option(help: Self.collectionHelp) var collection: String?
  @Flag(help: QuietOption.help) var quiet = false

  func validate() throws { QuietOption.apply(quiet) }
}

extension StoreOptions {
  /// Whether an option selects the store. Then the project's file does not.
  var isGiven: Bool { backend != nil || vault != nil || collection != nil }

  /// The backend that the options select, or `nil` if the configuration decides.
  func selected() throws(Failure) -> BackendSelection? {
    if vault != nil && collection != nil {
      throw .usage("--vault selects a vault, and --collection selects the keyring. Use one of them.")
    }
    let implied =
      vault.map { BackendSelection(.vault, at: $0) }
      ?? collection.map { BackendSelection(.keyring, at: $0) }
    guard let implied, let given = backend else { return implied ?? backend }
    if given.name != implied.name || given.place != nil {
      let option = vault == nil ? "--collection" : "--vault"
      throw .usage("\(option) selects \(implied), and --backend selects \(given). Use one of them.")
    }
    return implied
  }
}

extension BackendOptions {
  /// Returns the backend, without opening it.
  func open(_ configuration: BackendConfiguration = .current()) throws -> any SecretBackend {
    try Self.open(selected(), configuration)
  }

  /// Returns the backend that `selection` names, or the one that the configuration chooses, without opening it.
  static func open(
    _ selection: BackendSelection?, _ configuration: BackendConfiguration = .current(),
    options: VaultOptions = VaultOptions()
  ) throws(SecretError) -> any SecretBackend {
    var options = options
    options.tellsNobody = Output.messages.isNullDevice
    let backend = try configuration.backend(
      selection?.name, at: selection?.place, additionalCredentials: prompts(configuration), options: options)
    if backend is MemoryBackend {
      throw SecretError(
        .configuration, "COFFER_BACKEND is memory, where nothing outlives this command.",
        advice: "Unset it: memory is for the tests of programs.")
    }
    if let vault = backend as? VaultBackend { VaultNotes.register(vault) }
    #if Keyring
    if let keyring = backend as? KeyringBackend {
      keyring.shareDeadline()
      PromptInterruption.dismissPrompts(of: keyring)
      keyrings.withLock { $0.append(keyring) }
    }
    #endif
    return backend
  }

  static func prompts(_ configuration: BackendConfiguration) -> [VaultCredentialSource] {
    configuration.mayPrompt ? [PassphrasePrompt.source] : []
  }

  #if Keyring
  /// Keeps the keyrings in use until the process ends, which closes their connections without further calls.
  private static let keyrings = Mutex<[KeyringBackend]>([])
  #endif
}
