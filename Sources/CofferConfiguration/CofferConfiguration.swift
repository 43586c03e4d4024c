internal import CLinux
public import CofferCore
internal import CofferSystem
public import CofferVault
internal import Glibc

/// Which backend a program uses, and where a vault's key comes from: what the environment and the
/// configuration file say.
///
/// `COFFER_BACKEND` decides between `keyring` and `vault`. Where it is unset: the choice that `secret init`
/// recorded; else the vault, if its file exists or `COFFER_VAULT` names one; else the keyring, if there is
/// one; else nothing does, and ``choice()`` throws. An error never changes the choice. Thread-safe.
public struct CofferConfiguration: Sendable {
  let environment: RedactedEnvironment
  let key: SharedSecret?
  let descriptor: PassphraseDescriptor?
  private let keyring: KeyringProvider

  /// The longest wait for a passphrase's descriptor or command.
  public var timeout = Duration.seconds(60)

  /// What `environment` says. Reads nothing else: files are read when they are needed.
  public init(environment: [String: String]) {
    self.init(environment: environment, keyring: .builtIn)
  }

  package init(environment: [String: String], keyring: KeyringProvider) {
    // The key leaves the dictionary for guarded memory at once. What the caller has is the caller's.
    self.init(
      key: environment["COFFER_KEY"].map { SharedSecret(SecretBytes(copying: $0)) },
      environment: environment.filter { $0.key != "COFFER_KEY" },
      keyring: keyring
    )
  }

  private init(key: SharedSecret?, environment: [String: String], keyring: KeyringProvider) {
    self.key = key
    self.environment = RedactedEnvironment(environment)
    descriptor = environment["COFFER_PASSPHRASE_FD"].map { PassphraseDescriptor($0) }
    self.keyring = keyring
  }

  /// The environment this process had when it was first asked for: always the same configuration, because
  /// the descriptor that `COFFER_PASSPHRASE_FD` names can be read only once.
  public static func current() -> CofferConfiguration { process }
  private static let process = CofferConfiguration(process: coffer_environment())

  /// What the process's own environment says. Its key goes to guarded memory from where it is: a dictionary of
  /// everything would leave copies of it behind.
  private init(process variables: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?) {
    var key: SharedSecret?
    var environment: [String: String] = [:]
    var next = variables
    while let entries = next, let entry = entries.pointee {
      next = entries + 1
      let text = UnsafeRawBufferPointer(start: entry, count: strlen(entry))
      guard let equals = text.firstIndex(of: UInt8(ascii: "=")) else { continue }
      let name = String(decoding: text[..<equals], as: UTF8.self)
      let value = UnsafeRawBufferPointer(rebasing: text[(equals + 1)...])
      if name == "COFFER_KEY" {
        key = key ?? SharedSecret(SecretBytes(copying: Span(_unsafeBytes: value)))
      } else if environment[name] == nil {
        environment[name] = String(decoding: value, as: UTF8.self)
      }
    }
    self.init(key: key, environment: environment, keyring: .builtIn)
  }

  /// The variables that give away a vault's key or passphrase, or say how to get one. Take them out of the
  /// environment of a program that should not have them.
  public static let keyVariables = [
    "COFFER_KEY_FILE", "COFFER_KEY", "COFFER_PASSPHRASE_FD", "COFFER_PASSPHRASE_FILE",
    "COFFER_PASSPHRASE_COMMAND",
  ]

  // MARK: Paths

  /// `COFFER_VAULT`, or `$XDG_DATA_HOME/coffer/default.vault`.
  public var vaultPath: String {
    environment.nonEmpty("COFFER_VAULT") ?? directories.path(.data) + "/coffer/default.vault"
  }

  /// `$XDG_CONFIG_HOME/coffer/config`.
  public var configurationFile: String { configurationDirectory + "/config" }

  /// Where `secret init` puts a new vault's key: `$XDG_CONFIG_HOME/coffer/key`.
  public var defaultKeyFile: String { configurationDirectory + "/key" }

  var configurationDirectory: String { directories.path(.configuration) + "/coffer" }

  /// Whether a person may be asked: unless `COFFER_NO_PROMPT` is set.
  public var mayPrompt: Bool { environment.nonEmpty("COFFER_NO_PROMPT") == nil }

  private var directories: BaseDirectories {
    BaseDirectories { [environment] name in environment.nonEmpty(name) }
  }

  /// Where the newest states of vaults are remembered, or `nil` where no such directory can be had.
  private func stateDirectory() -> String? {
    let path = directories.path(.state) + "/coffer"
    do throws(SecretError) {
      // No directory is created for a user whose home directory does not exist.
      if directories.named(.state) == nil {
        guard let home = directories.home, try Path.exists(home) else { return nil }
      }
      try PrivateDirectory.create(path)
    } catch { return nil }
    return path
  }

  // MARK: The choice

  /// The two backends that can be chosen by name.
  public enum Kind: String, CaseIterable, Sendable {
    case keyring, vault
  }

  /// A backend, and why it is the one.
  public struct Choice: Hashable, Sendable {
    public let kind: Kind
    /// A sentence.
    public let reason: String
  }

  /// The backend to use. Throws `.configuration` where the variable or the file is wrong, or where nothing
  /// decides; and `.denied` or `.io` where the file or the vault's path cannot be read.
  public func choice() throws(SecretError) -> Choice {
    if let name = environment.nonEmpty("COFFER_BACKEND") {
      guard let kind = Kind(rawValue: name) else {
        throw SecretError(
          .configuration,
          "COFFER_BACKEND is neither keyring nor vault.",
          advice: "Set it to one of them, or unset it."
        )
      }
      return Choice(kind: kind, reason: "COFFER_BACKEND is \(kind.rawValue).")
    }
    let named = environment.nonEmpty("COFFER_VAULT") != nil
    if let kind = try recorded().backend {
      let unused = named && kind == .keyring ? " COFFER_VAULT is set, and has no effect." : ""
      return Choice(kind: kind, reason: "The file \(configurationFile) says \(kind.rawValue).\(unused)")
    }
    // A vault that is named and not there is an error of its own, and no reason to look into the keyring.
    if named { return Choice(kind: .vault, reason: "COFFER_VAULT names a vault.") }
    try directories.requireHome(for: .data)
    if try Path.exists(vaultPath) {
      return Choice(kind: .vault, reason: "There is a vault at \(vaultPath).")
    }
    if keyring.isAvailable(environment.without(Self.keyVariables)) {
      return Choice(
        kind: .keyring,
        reason: "There is a keyring on the session bus, and no vault at \(vaultPath)."
      )
    }
    throw SecretError(
      .configuration,
      "There is no store for secrets yet: no vault at \(vaultPath), and no keyring.",
      advice: "Run `secret init` to make a vault, or set COFFER_VAULT to the path of one."
    )
  }

  // MARK: Backends

  /// The vault at `path`, or at ``vaultPath``. It is opened at its first use, with ``credentialSources(extra:)``.
  ///
  /// Unless `options` names another directory, the newest state seen of it is remembered in
  /// `$XDG_STATE_HOME/coffer`, which is made where it can be.
  public func vault(
    at path: String? = nil,
    extraSources: [any VaultCredentialSource] = [],
    options: VaultOptions = VaultOptions()
  ) -> VaultBackend {
    vault(at: path, credentials: credentialSources(extra: extraSources), options: options)
  }

  /// The same with other sources.
  package func vault(
    at path: String?,
    credentials: [any VaultCredentialSource],
    options: VaultOptions = VaultOptions()
  ) -> VaultBackend {
    var options = options
    if options.knownVaultsDirectory == nil { options.knownVaultsDirectory = stateDirectory() }
    return VaultBackend(path: path ?? vaultPath, credentials: credentials, options: options)
  }

  /// The backend of that kind, or the one that is chosen. Throws what ``choice()`` throws, and
  /// `.unsupported` where it is the keyring and the program was built without it.
  public func backend(
    _ kind: Kind? = nil,
    extraSources: [any VaultCredentialSource] = [],
    options: VaultOptions = VaultOptions()
  ) throws(SecretError) -> any SecretBackend {
    let chosen: Kind
    if let kind { chosen = kind } else { chosen = try choice().kind }
    switch chosen {
    case .keyring: return try keyring.make(environment.without(Self.keyVariables))
    case .vault:
      if environment.nonEmpty("COFFER_VAULT") == nil { try directories.requireHome(for: .data) }
      return vault(extraSources: extraSources, options: options)
    }
  }

  // MARK: What `secret init` records

  private func recorded() throws(SecretError) -> ConfigurationFile {
    try ConfigurationFile(path: configurationFile)
  }

  /// Records the choice of a backend.
  public func record(backend: Kind) throws(SecretError) {
    try change { file throws(SecretError) in file.set("backend", backend.rawValue) }
  }

  /// Records the path of the key file of the vault with that id. The path is absolute.
  public func record(keyFile: String, forVault id: String) throws(SecretError) {
    guard ConfigurationFile.isVaultIdentifier(id), ConfigurationFile.isRecordable(path: keyFile) else {
      throw SecretError(
        .configuration,
        "The path of a key file must be absolute and on one line.",
        advice: "Choose another place for the key file."
      )
    }
    try change { file throws(SecretError) in file.set("key-file.\(id)", keyFile) }
  }

  /// The path of the key file that was recorded for the vault with that id.
  public func recordedKeyFile(forVault id: String) throws(SecretError) -> String? {
    try recorded().keyFiles[id]
  }

  private func change(_ body: (inout ConfigurationFile) throws(SecretError) -> Void) throws(SecretError) {
    try directories.requireHome(for: .configuration)
    try PrivateDirectory.create(configurationDirectory)
    try PrivateDirectory.withLock(configurationDirectory, timeout: .seconds(10)) { () throws(SecretError) in
      var file = try recorded()
      try body(&file)
      try PrivateFile.write(file.text.utf8.span, to: configurationFile, replacing: true)
    }
  }
}
