internal import ArgumentParser
internal import Coffer
internal import Synchronization

/// The options that select a backend. Commands that implement another program's protocol take these alone,
/// because the protocol determines the service.
struct BackendOptions: ParsableArguments {
  @Option(
    help: """
      The backend to use: \(BackendName.allValueStrings.joined(separator: " or ")). Default: the one that `secret doctor` \
      reports.
      """,
    completion: .list(BackendName.allValueStrings))
  var backend: BackendName?

  @Option(
    help: ArgumentHelp("The vault file to use; implies --backend vault.", valueName: "path"),
    completion: .file())
  var vault: String?

  @Option(
    help: ArgumentHelp(
      "The keyring's collection to use, by its alias or label; implies --backend keyring.", valueName: "name")
  )
  var collection: String?
}

extension BackendOptions {
  /// Options without a command line.
  init(backend: BackendName?, vault: String? = nil) {
    self.init()
    self.backend = backend
    self.vault = vault
    collection = nil
  }

  /// The backend that the options select, or `nil` if the configuration decides.
  func selected() throws(Failure) -> BackendName? {
    if vault != nil && collection != nil {
      throw .usage("--vault selects a vault, and --collection selects the keyring. Use one of them.")
    }
    let implied: [(option: String, name: BackendName)] =
      (vault == nil ? [] : [("--vault", .vault)]) + (collection == nil ? [] : [("--collection", .keyring)])
    guard let (option, name) = implied.first else { return backend }
    if let backend, backend != name {
      throw .usage("\(option) selects the \(name), and --backend selects the \(backend). Use one of them.")
    }
    return name
  }

  /// Returns the backend, without opening it.
  func open(_ configuration: CofferConfiguration = .current()) throws -> any SecretBackend {
    try Self.open(selected(), at: vault ?? collection, configuration)
  }

  /// Returns a backend, without opening it, by the arguments of `CofferConfiguration.backend`.
  static func open(
    _ name: BackendName?, at place: String?, _ configuration: CofferConfiguration = .current()
  ) throws(SecretError) -> any SecretBackend {
    var early: (any SecretBackend)?
    #if Keyring
    if name == nil { early = try EarlyBackend.take() }
    #endif
    let backend = if let early { early } else { try make(name, at: place, configuration) }
    if backend is MemoryBackend {
      throw SecretError(
        .configuration, "COFFER_BACKEND is memory, where nothing outlives this command.",
        advice: "Unset it: memory is for the tests of programs.")
    }
    if let vault = backend as? VaultBackend { VaultNotes.register(vault) }
    #if Keyring
    if let keyring = backend as? KeyringBackend {
      PromptInterruption.dismissPrompts(of: keyring)
      keyrings.withLock { $0.append(keyring) }
    }
    #endif
    return backend
  }

  /// Returns the same backend, without the preparations of the tool.
  static func make(
    _ name: BackendName?, at place: String?, _ configuration: CofferConfiguration
  ) throws(SecretError) -> any SecretBackend {
    let prompts: [any VaultCredentialSource] = configuration.mayPrompt ? [PassphrasePrompt()] : []
    return try configuration.backend(name, at: place, additionalCredentials: prompts)
  }

  #if Keyring
  /// The keyrings in use, until the process ends: that closes their connections without a further call.
  private static let keyrings = Mutex<[KeyringBackend]>([])
  #endif

  /// Returns the backend, without opening it. Throws `.unsupported` if it keeps no earlier versions.
  func openVersioned() throws -> any VersionedSecretBackend {
    guard let backend = try open() as? any VersionedSecretBackend else {
      throw SecretError(
        .unsupported,
        "The selected backend keeps no earlier versions of secrets.",
        advice: "Select a vault with --vault PATH or --backend vault."
      )
    }
    return backend
  }

  /// Returns the vault, without opening it. Throws `.unsupported` if another backend is selected;
  /// `requirement` is the clause for the message, such as "Only a vault can be locked".
  func openVault(requirement: String) throws -> VaultBackend {
    guard let vault = try open() as? VaultBackend else {
      throw SecretError(
        .unsupported,
        "\(requirement), and the selected backend is not a vault.",
        advice: "Select a vault with --vault PATH or --backend vault."
      )
    }
    return vault
  }
}
