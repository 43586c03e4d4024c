internal import CLinux
internal import CofferCore
internal import CofferSystem
internal import CofferVault
internal import CofferLibc

/// The environment and the configuration file. They determine which backend a program uses, and where a vault's
/// credential comes from.
///
/// `COFFER_BACKEND` names the backend, or one of its stores: `vault:PATH` or `keyring:COLLECTION`. If it is unset, the
/// choice in the configuration file decides. Without that, it is the vault if `COFFER_VAULT` is set or the default
/// vault exists, else the keyring if it is available, else none. An error never changes the choice. Thread-safe.
public struct BackendConfiguration: Sendable {
  let environment: RedactedEnvironment
  let key: SecretBytes?
  /// The inherited descriptors, each by the variable that names it.
  let descriptors: [String: InheritedDescriptor]
  let providers: [any BackendProvider]
  let directories: BaseDirectories
  /// A file that exists only in a Flatpak.
  let flatpakInfo: String
  let lastRead = LastRead()

  /// The longest wait for the passphrase from a descriptor or a command: 60 seconds by default.
  package var timeout = Duration.seconds(60)

  /// Creates the configuration of an environment. Files are read when they are needed.
  public init(environment: [String: String]) {
    self.init(environment: environment, providers: BackendRegistry.providers)
  }

  package init(
    environment: [String: String], providers: [any BackendProvider], flatpakInfo: String = Self.flatpakInfo
  ) {
    // The key moves to guarded memory. The caller still has its own copy.
    self.init(
      key: environment["COFFER_KEY"].map { SecretBytes($0) },
      environment: environment.filter { $0.key != "COFFER_KEY" },
      providers: providers,
      flatpakInfo: flatpakInfo
    )
  }

  /// Source: flatpak-metadata(5).
  package static let flatpakInfo = "/.flatpak-info"

  private init(
    key: SecretBytes?, environment: [String: String], providers: [any BackendProvider], flatpakInfo: String
  ) {
    self.key = key
    self.flatpakInfo = flatpakInfo
    let environment = RedactedEnvironment(environment)
    self.environment = environment
    directories = BaseDirectories { name in environment.nonEmpty(name) }
    descriptors = Self.keyVariables.reduce(into: [:]) { descriptors, name in
      descriptors[name] = environment[name].flatMap { InheritedDescriptor($0, of: name) }
    }
    self.providers = providers
  }

  /// The configuration of this process, from its environment at the first call. All calls return the same one, because
  /// the descriptor that `COFFER_PASSPHRASE_FD` names can be read only once.
  public static func current() -> BackendConfiguration { process }
  private static let process = BackendConfiguration(process: coffer_environment())

  package var namesBackend: Bool { environment.nonEmpty("COFFER_BACKEND") != nil }

  /// Copies the process's environment. The key goes straight to guarded memory, because a dictionary of all variables
  /// would leave copies of it behind.
  private init(process variables: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?) {
    var key: SecretBytes?
    var environment: [String: String] = [:]
    var next = variables
    while let entries = next, let entry = entries.pointee {
      next = entries + 1
      let text = UnsafeRawBufferPointer(start: entry, count: strlen(entry))
      guard let equals = text.firstIndex(of: UInt8(ascii: "=")) else { continue }
      let name = String(decoding: text[..<equals], as: UTF8.self)
      let value = UnsafeRawBufferPointer(rebasing: text[(equals + 1)...])
      if name == "COFFER_KEY" {
        key = key ?? SecretBytes(Span(_unsafeBytes: value))
      } else if environment[name] == nil {
        environment[name] = String(decoding: value, as: UTF8.self)
      }
    }
    self.init(key: key, environment: environment, providers: BackendRegistry.providers, flatpakInfo: Self.flatpakInfo)
  }

  /// The variables that hold a vault's key or passphrase, or tell how to get one, in the order in which they are tried.
  /// Remove them from the environment of programs that must not open the vault.
  package static let keyVariables = [
    "COFFER_KEY_FILE", "COFFER_KEY", "COFFER_KEY_COMMAND", "COFFER_PASSPHRASE_FD", "COFFER_PASSPHRASE_FILE",
    "COFFER_PASSPHRASE_COMMAND",
  ]

  /// The path in `COFFER_KEY_FILE`, which may have been removed from the process's environment. `nil` if it is unset,
  /// empty or the path of a descriptor.
  package var keyFile: String? {
    descriptors["COFFER_KEY_FILE"] == nil ? environment.nonEmpty("COFFER_KEY_FILE") : nil
  }

  /// Keeps the programs that this one starts from inheriting the descriptors that variables name.
  package func hideDescriptors() { descriptors.values.forEach { $0.hide() } }

  /// This configuration without prompts, commands and passphrases, for a process that must not wait.
  package var unattended: BackendConfiguration {
    let known = ["COFFER_KEY_FILE", "COFFER_KEY"]
    var variables = environment.without(Self.keyVariables.filter { !known.contains($0) })
    variables["COFFER_NO_PROMPT"] = "1"
    return BackendConfiguration(key: key, environment: variables, providers: providers, flatpakInfo: flatpakInfo)
  }

  package var mayPrompt: Bool { environment.nonEmpty("COFFER_NO_PROMPT") == nil }

  /// The environment for code of other projects, which must not see what opens the vault.
  package var environmentWithoutKeys: [String: String] { environment.without(Self.keyVariables) }

  /// Returns those of `variables` that are set, even if they are empty.
  package func set(of variables: [String]) -> [String] {
    variables.filter { environment[$0] != nil || ($0 == "COFFER_KEY" && key != nil) }
  }

  // MARK: Paths

  /// Whether the directory that a variable names is used, by the rule of `BaseDirectories`.
  package func uses(directoryOf variable: String) -> Bool { directories.given(variable) != nil }

  /// The path of the vault: PATH if `COFFER_BACKEND` is `vault:PATH`, else `COFFER_VAULT`, else
  /// `$XDG_DATA_HOME/coffer/default.vault`.
  package var vaultPath: String { namedVaultPath ?? defaultVaultPath }

  /// The path of the vault in the environment, or `nil` if no variable names one.
  var namedVaultPath: String? {
    let selection = environment.nonEmpty("COFFER_BACKEND").flatMap(providers.selection)
    let path = selection?.name == BackendName.vault ? selection?.place : nil
    return path ?? environment.nonEmpty("COFFER_VAULT")
  }

  /// The vault's path if no option and no variable sets another.
  package var defaultVaultPath: String { directories.path(.data) + "/coffer/default.vault" }

  /// The path of the configuration file: `$XDG_CONFIG_HOME/coffer/config.toml`.
  package var configurationFile: String { configurationDirectory + "/config.toml" }

  /// The path of the key file for a new vault, unless the user chooses another: `$XDG_CONFIG_HOME/coffer/key`.
  package var defaultKeyFile: String { configurationDirectory + "/key" }

  var configurationDirectory: String { directories.path(.configuration) + "/coffer" }

  /// The path of the directory of the records of known vaults. Creates it if possible. If it cannot be used, the vault
  /// reports why when it is used.
  package func knownVaultsDirectory() -> String { ownDirectory("/coffer/known-vaults", in: .state) }

  /// The path of the directory of the sealed copies of vaults on engines, which is created likewise.
  func copiesDirectory() -> String { ownDirectory("/coffer", in: .cache) }

  private func ownDirectory(_ name: String, in kind: BaseDirectories.Kind) -> String {
    let path = directories.path(kind) + name
    if FileStatus(of: path) != nil { return path }
    guard directories.named(kind) != nil || directories.home.map({ Self.isOwn($0) }) == true else { return path }
    // Root must not create directories in the home of another user, who could not write to them.
    var existing = path
    while FileStatus(of: existing) == nil, existing != "/" { existing = Path.parent(of: existing) }
    if Self.isOwn(existing) {
      do throws(SecretError) { try PrivateDirectory.create(path) } catch {
        // The vault reports the problem when it is used.
      }
    }
    return path
  }

  /// The path of the directory with the records of the project files that the user has allowed.
  package var allowedProjectsDirectory: String { directories.path(.state) + "/coffer/allowed-projects" }

  /// Whether `path` exists and belongs to the effective user or to root.
  static func isOwn(_ path: String, followingLink: Bool = true) -> Bool {
    guard let status = FileStatus(of: path, followingLink: followingLink) else { return false }
    return status.owner == geteuid() || status.owner == 0
  }
}
