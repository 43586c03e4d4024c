public import CofferCore
internal import CofferSystem
public import CofferVault

extension BackendConfiguration {
  /// A backend and the reason for its choice.
  package struct Choice: Hashable, Sendable {
    package let selection: BackendSelection
    /// Why it is chosen, as one or two sentences.
    package let reason: String
  }

  /// Returns the backend to use.
  ///
  /// Throws `.noBackend` if no backend is available, `.configuration` if `COFFER_BACKEND` or the configuration file is
  /// wrong, `.denied` or `.io` if the file or the path of the vault cannot be read, and `.timedOut` if the session bus
  /// does not answer. Blocks for at most 5 seconds for the bus, and in a Flatpak for 5 more for the Secret portal.
  package func choice() throws(SecretError) -> Choice { try choose().choice }

  /// Returns ``choice()``, and the backend if it was created to find out.
  private func choose() throws(SecretError) -> (choice: Choice, backend: (any SecretBackend)?) {
    if let text = environment.nonEmpty("COFFER_BACKEND") {
      let memory = text == BackendName.memory.rawValue ? BackendSelection(.memory) : nil
      guard let selection = memory ?? providers.selection(text) else {
        let all = providers.forms
        throw SecretError(
          .configuration, "COFFER_BACKEND is not the name of a backend.",
          advice: "Set it to \(all.dropLast().joined(separator: ", ")) or \(all.last ?? ""), or unset it.")
      }
      return (Choice(selection: selection, reason: "COFFER_BACKEND is \(selection)."), nil)
    }
    if let selection = try recorded().backend {
      let unused = unusedVariables(with: selection).map { " \($0) has no effect." }.joined()
      let reason = "The file \(configurationFile) names \(selection).\(unused)"
      return (Choice(selection: selection, reason: reason), nil)
    }
    var absences: [String] = []
    for provider in providers {
      if let found = try provider.availability(in: self) {
        let clauses = [found.reason] + absences.map { "there is \($0)" }
        let choice = Choice(selection: BackendSelection(provider.name), reason: clauses.sentence)
        return (choice, found.backend)
      }
      absences.append(provider.absence(in: self))
    }
    throw SecretError(
      .noBackend, "There is no store for secrets yet: \(absences.sentence)",
      advice: try hasSecretPortal()
        ? "Create a vault with BackendConfiguration.createPortalVault, which the Secret portal opens."
        : providers.map(\.setup).joined(separator: " "))
  }

  /// Returns the backend with that name, or the one that the configuration chooses. It is opened at its first use.
  ///
  /// - Parameters:
  ///   - name: The name of the backend.
  ///   - place: The store within the backend: the path of a vault, or the alias or label of a keyring's collection. If
  ///     it is `nil`: the vault that the configuration names, or all collections; without `name`, the store that the
  ///     configuration chooses.
  ///   - additionalCredentials: Sources of a vault's credential that are tried after those of the configuration.
  ///   - options: The options of a vault.
  ///
  /// With ``BackendName/memory``, the other parameters have no effect, and the result is always the same object.
  ///
  /// Throws `.noBackend` if none is available, `.configuration` if the configuration is malformed or there is no such
  /// backend, and `.unsupported` if the program was built without it.
  public func backend(
    _ name: BackendName? = nil,
    at place: String? = nil,
    additionalCredentials: [VaultCredentialSource] = [],
    options: VaultOptions = VaultOptions()
  ) throws(SecretError) -> any SecretBackend {
    let chosen: BackendSelection
    if let name {
      chosen = BackendSelection(name, at: place)
    } else {
      let (choice, backend) = try choose()
      if let backend, place == nil { return backend }
      chosen = BackendSelection(choice.selection.name, at: place ?? choice.selection.place)
    }
    if chosen.name == .memory { return Self.memory }
    return try provider(of: chosen.name).backend(
      at: chosen.place, in: self, additionalCredentials: additionalCredentials, options: options)
  }

  /// Like the synchronous method, on a thread for blocking calls.
  public func backend(
    _ name: BackendName? = nil,
    at place: String? = nil,
    additionalCredentials: [VaultCredentialSource] = [],
    options: VaultOptions = VaultOptions()
  ) async throws(SecretError) -> any SecretBackend {
    try await CallThreads.shared.run {
      Result { () throws(SecretError) in
        try backend(name, at: place, additionalCredentials: additionalCredentials, options: options)
      }
    }.get()
  }

  /// One object for all calls of this process, so that they share the secrets.
  private static let memory = MemoryBackend()

  package func provider(of name: BackendName) throws(SecretError) -> any BackendProvider {
    if let provider = providers.first(where: { $0.name == name }) { return provider }
    throw SecretError(
      .configuration, "There is no backend with the name \(name).",
      advice: "Use \(providers.map(\.name.rawValue).joined(separator: " or ")).")
  }

  /// The variables that are set and have no effect with `selection`: those of other backends, or of another store.
  package func unusedVariables(with selection: BackendSelection) -> [String] {
    set(
      of: providers.flatMap { provider in
        if provider.name != selection.name { return provider.variables }
        return selection.place == nil ? [] : [provider.placeVariable].compactMap(\.self)
      })
  }

  /// Returns the vault at `path`, at `COFFER_VAULT` or at the default path. Its first use opens it, with the
  /// configuration's sources of keys and then `additionalCredentials`.
  ///
  /// What was seen of the vault is recorded in the directory in `options`; by default in
  /// `$XDG_STATE_HOME/coffer/known-vaults`, which is created if possible. The policy of the first use is the one in
  /// `options`; by default, it is versioned in the work tree of a git repository, except for the default vault, and
  /// strict elsewhere. The pins are those in `options`, or else those in `COFFER_PIN`, separated by spaces.
  public func vault(
    at path: String? = nil,
    additionalCredentials: [VaultCredentialSource] = [],
    options: VaultOptions = VaultOptions()
  ) -> VaultBackend {
    vault(at: path, credentials: credentials(additional: additionalCredentials), options: options)
  }

  /// Creates a vault as `VaultBackend.create` does, at `path` or `COFFER_VAULT`, else the default path, and records it
  /// as known, with the directory and the policy of ``vault(at:additionalCredentials:options:)``. Returns whether it
  /// was recorded. Throws like `VaultBackend.create`.
  @discardableResult
  package func createVault(
    at path: String? = nil,
    credential: VaultCredential,
    label: String = "",
    recipients: [VaultRecipient] = [],
    history: HistoryLimit = .standard,
    options: VaultOptions = VaultOptions()
  ) throws(SecretError) -> Bool {
    let path = path ?? vaultPath
    let options = recording(options, of: path)
    let (medium, environment) = VaultEnvironment().place(path, options)
    return try VaultBackend.create(
      on: medium, credential: credential, label: label, recipients: recipients, history: history,
      options: options, environment: environment
    ).isRecorded
  }

  /// Whether there is anything at the path or URL. Throws `.io`, `.denied`, and the errors of an engine.
  package func isTaken(_ path: String) throws(SecretError) -> Bool {
    guard RemoteURL.isURL(path) else { return FileStatus(of: path, followingLink: false) != nil }
    do throws(SecretError) {
      try VaultEnvironment().place(path, VaultOptions()).medium.requireVacant()
      return false
    } catch  where error.code == .alreadyExists { return true }
  }

  /// Returns the vault with only the sources `credentials`.
  package func vault(
    at path: String?,
    credentials: [VaultCredentialSource],
    options: VaultOptions = VaultOptions()
  ) -> VaultBackend {
    let path = path ?? vaultPath
    var options = recording(options, of: path)
    options.lockedAdvice = "Set COFFER_KEY_FILE, or one of the other sources of keys."
    return VaultBackend(path: path, credentials: credentials, options: options)
  }

  /// Adds to `options` the directory for the records of known vaults, the policy for the vault's path, and the pins.
  private func recording(_ options: VaultOptions, of path: String) -> VaultOptions {
    var options = options
    options.isInWorkTree = isInWorkTree(path)
    if options.firstUsePolicy == nil, options.isInWorkTree { options.firstUsePolicy = .versioned }
    if options.pins.isEmpty, let pins = environment["COFFER_PIN"] {
      options.pins = pins.split { $0.isASCII && $0.isWhitespace }.map(String.init)
      // A variable that is set and empty is an error: a CI system does this if the pin is not available.
      if options.pins.isEmpty { options.pins = [""] }
    }
    if options.copiesDirectory == nil, RemoteURL.isURL(path) { options.copiesDirectory = copiesDirectory() }
    if options.knownVaultsDirectory == nil { options.knownVaultsDirectory = knownVaultsDirectory() }
    return options
  }
}

extension BackendConfiguration {
  /// Whether the vault at `path`, with links resolved, is in the work tree of a git repository. Always `false` for the
  /// default vault, because a home directory may be a work tree.
  package func isInWorkTree(_ path: String) -> Bool {
    if path == defaultVaultPath || RemoteURL.isURL(path) { return false }
    let disk = LinuxFileSystem()
    do throws(FileSystemError) {
      // `nil` if the directory of the default vault cannot be opened.
      let defaultPath = try? disk.locate(defaultVaultPath, followingLink: false).path
      if try disk.locate(path, followingLink: false).path == defaultPath { return false }
      var directory = try disk.locate(path, followingLink: true).path
      repeat {
        directory = Path.parent(of: directory)
        if Self.isWorkTree(directory) { return true }
      } while directory != "/"
    } catch {
      // If this cannot be determined, the policy is strict.
    }
    return false
  }

  /// Whether `directory` is the work tree of a repository: it has a directory `.git` with an entry `HEAD`, or a file
  /// `.git`, as in a submodule.
  ///
  /// No other user may cause older states of the vault to be accepted. So `.git`, and its target if it is a link, must
  /// belong to this user or to root, and a directory to which everybody can write, such as /tmp, does not count.
  package static func isWorkTree(_ directory: String) -> Bool {
    let path = "\(directory)/.git"
    guard isOwn(path, followingLink: false), isOwn(path), let around = FileStatus(of: directory),
      around.mode & 0o002 == 0
    else { return false }
    return FileStatus(of: path)?.isRegular == true || FileStatus(of: "\(path)/HEAD") != nil
  }
}

extension [String] {
  fileprivate var sentence: String { joined(separator: ", and ") + "." }
}
