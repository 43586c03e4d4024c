@testable import Coffer
import CofferTestSupport
import CofferVault
@testable import CofferConfiguration
import CofferCore
import Foundation
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(30))) struct CofferConfigurationTests {
  let home: TemporaryDirectory
  let id = String(repeating: "0123456789abcdef", count: 2)

  init() throws { home = try TemporaryDirectory() }

  private func configuration(_ more: [String: String] = [:], keyring: Bool = false) -> BackendConfiguration {
    BackendConfiguration(
      environment: home.environment(more), providers: [VaultProvider(), StubKeyring(isAvailable: keyring)])
  }

  @Test func aBackendIsParsedWithItsPlace() throws {
    let providers = BackendRegistry.providers
    #expect(providers.forms == ["vault", "vault:PATH", "keyring", "keyring:COLLECTION"])
    #expect(providers.selection("vault") == BackendSelection(.vault))
    #expect(providers.selection("vault:/a:b") == BackendSelection(.vault, at: "/a:b"))
    #expect(providers.selection("keyring:login") == BackendSelection(.keyring, at: "login"))
    for text in ["vault:", "keyring:", "file", "", ":", "Vault"] {
      #expect(providers.selection(text) == nil, "\(text)")
    }
    let configuration = BackendConfiguration(environment: home.environment())
    let error = thrown { () throws(SecretError) in
      _ = try configuration.backend(BackendName(rawValue: "file"), at: "/x")
    }
    #expect(error?.code == .configuration)
  }

  // MARK: Paths

  @Test func pathsFollowTheXDGSpecification() {
    let unset = configuration()
    #expect(unset.vaultPath == home.path + "/.local/share/coffer/default.vault")
    #expect(unset.configurationFile == home.path + "/.config/coffer/config.toml")
    #expect(unset.defaultKeyFile == home.path + "/.config/coffer/key")
    let set = configuration(["XDG_DATA_HOME": "/data", "XDG_CONFIG_HOME": "/conf"])
    #expect(set.vaultPath == "/data/coffer/default.vault")
    #expect(set.configurationFile == "/conf/coffer/config.toml")
    #expect(set.defaultKeyFile == "/conf/coffer/key")
    // Relative and empty paths are ignored.
    for text in ["data", "./data", ""] {
      let ignored = configuration(["XDG_DATA_HOME": text, "XDG_CONFIG_HOME": text])
      #expect(ignored.vaultPath == unset.vaultPath)
      #expect(ignored.configurationFile == unset.configurationFile)
    }
    #expect(configuration(["COFFER_VAULT": "some/x.vault"]).vaultPath == "some/x.vault")
    #expect(configuration(["COFFER_VAULT": ""]).vaultPath == unset.vaultPath)
    #expect(
      configuration(["COFFER_BACKEND": "vault:some/y.vault", "COFFER_VAULT": "x"]).vaultPath == "some/y.vault"
    )
    #expect(configuration(["COFFER_BACKEND": "keyring:x", "COFFER_VAULT": "x"]).vaultPath == "x")
  }

  @Test func withoutHOMEThePasswordDatabaseDecides() throws {
    let entry = try #require(getpwuid(geteuid()))
    let directory = String(cString: entry.pointee.pw_dir)
    for environment in [[:], ["HOME": ""], ["HOME": "relative"]] {
      let path = BackendConfiguration(environment: environment).configurationFile
      #expect(path == directory + "/.config/coffer/config.toml")
    }
  }

  @Test func aVariableForbidsPrompts() {
    #expect(configuration().mayPrompt)
    #expect(configuration(["COFFER_NO_PROMPT": ""]).mayPrompt)
    #expect(!configuration(["COFFER_NO_PROMPT": "1"]).mayPrompt)
    #expect(!configuration(["COFFER_NO_PROMPT": "0"]).mayPrompt)
  }

  // MARK: The choice

  @Test func theVariableDecides() throws {
    try configuration().record(backend: .vault)
    let choice = try configuration(["COFFER_BACKEND": "keyring"]).choice()
    #expect(choice.selection.name == .keyring)
    #expect(choice.reason == "COFFER_BACKEND is keyring.")
    #expect(try configuration(["COFFER_BACKEND": "vault"], keyring: true).choice().selection.name == .vault)
  }

  @Test func theVariableNamesAStoreToo() throws {
    let vault = configuration(["COFFER_BACKEND": "vault:/a:b", "COFFER_VAULT": "/x"])
    #expect(try vault.choice().selection.name == .vault && vault.choice().selection.place == "/a:b")
    #expect(try vault.choice().reason == "COFFER_BACKEND is vault:/a:b.")
    #expect(try (vault.backend() as? VaultBackend)?.path == "/a:b")
    #expect(try (vault.backend(at: "/c") as? VaultBackend)?.path == "/c")
    #expect(try places(of: ["COFFER_BACKEND": "keyring:My work"]) { try $0.backend() } == ["My work"])
    #expect(try places(of: ["COFFER_BACKEND": "keyring"]) { try $0.backend() } == [nil])
    // A name in a call selects all collections.
    #expect(try places(of: ["COFFER_BACKEND": "keyring:work"]) { try $0.backend(.keyring) } == [nil])
  }

  /// The places of the keyrings that are made during `body`.
  private func places(
    of environment: [String: String], _ body: (BackendConfiguration) throws -> any SecretBackend
  ) throws -> [String?] {
    let places = Mutex<[String?]>([])
    let keyring = StubKeyring(isAvailable: true, make: { place in places.withLock { $0.append(place) } })
    let configuration = BackendConfiguration(
      environment: home.environment(environment), providers: [VaultProvider(), keyring])
    _ = try body(configuration)
    return places.withLock { $0 }
  }

  @Test(arguments: ["Vault", "file", " vault", "vault\n", "vault:", "keyring:", "memory:x", ":"])
  func anUnknownBackendInTheVariableIsAnError(name: String) throws {
    let error = try #require(
      thrown { () throws(SecretError) in
        _ = try configuration(["COFFER_BACKEND": name], keyring: true).choice()
      }
    )
    #expect(error.code == .configuration)
    #expect(error.description.contains("COFFER_BACKEND"))
    #expect(error.advice?.contains("vault, vault:PATH, keyring or keyring:COLLECTION") == true)
  }

  @Test func theRecordedChoiceIsSecond() throws {
    try home.write("", to: ".local/share/coffer/default.vault")
    try configuration().record(backend: .keyring)
    let choice = try configuration().choice()
    #expect(choice.selection.name == .keyring)
    #expect(choice.reason.contains(home.path + "/.config/coffer/config.toml"))
    #expect(try configuration(["COFFER_VAULT": "/x"]).choice().reason.contains("has no effect"))
    try configuration().record(backend: .vault)
    #expect(try configuration(keyring: true).choice().selection.name == .vault)
  }

  @Test func theRecordedChoiceNamesAStoreToo() throws {
    try configuration().record(backend: .keyring, at: "My work")
    #expect(try configuration().choice().selection.place == "My work")
    #expect(try places(of: [:]) { try $0.backend() } == ["My work"])
    try configuration().record(backend: .vault, at: "/a:b")
    let other = configuration(["COFFER_VAULT": "/x"])
    #expect(try (other.backend() as? VaultBackend)?.path == "/a:b")
    #expect(try other.choice().reason.hasSuffix(" names vault:/a:b. COFFER_VAULT has no effect."))
    try configuration().record(backend: .vault)
    #expect(try configuration().choice().selection.place == nil)
  }

  @Test(arguments: [
    (BackendName.vault, "relative"), (.vault, ""), (.vault, "/a\0b"), (.keyring, ""), (.keyring, "a\0"),
  ])
  func aStoreThatCannotBeReadBackIsNotRecorded(_ backend: BackendName, _ place: String) throws {
    let error = thrown { () throws(SecretError) in try configuration().record(backend: backend, at: place) }
    #expect(error?.code == .configuration)
    #expect(!FileManager.default.fileExists(atPath: home.path + "/.config/coffer/config.toml"))
  }

  @Test func anExistingVaultIsThird() throws {
    try home.write("", to: ".local/share/coffer/default.vault")
    let choice = try configuration(keyring: true).choice()
    #expect(choice.selection.name == .vault)
    #expect(choice.reason == "There is a vault at \(home.path)/.local/share/coffer/default.vault.")
  }

  @Test func aNamedVaultIsChosenEvenIfItIsMissing() throws {
    let choice = try configuration(["COFFER_VAULT": home.path + "/missing"], keyring: true).choice()
    #expect(choice.selection.name == .vault)
  }

  @Test func anAvailableKeyringIsLast() throws {
    #expect(try configuration(keyring: true).choice().selection.name == .keyring)
  }

  @Test func withoutABackendTheErrorNamesWhatIsMissing() throws {
    let error = try #require(thrown { () throws(SecretError) in _ = try configuration().choice() })
    #expect(error.code == .noBackend)
    #expect(error.advice?.contains("VaultBackend.create") == true)
  }

  #if !Keyring
  @Test func aProgramWithoutTheKeyringSaysSo() throws {
    let configuration = BackendConfiguration(environment: home.environment())
    let error = try #require(thrown { () throws(SecretError) in _ = try configuration.choice() })
    #expect(error.reason.hasSuffix("and no support for keyrings in this program."))
    #expect(error.advice?.contains("the trait Keyring") == true)
  }
  #endif

  @Test func anErrorDoesNotChangeTheChoice() throws {
    // A wrong file, and a path that cannot be followed.
    try home.write("backend = \"kerying\"\n", to: ".config/coffer/config.toml")
    let error = thrown { () throws(SecretError) in _ = try configuration(keyring: true).choice() }
    #expect(error?.code == .configuration)
    #expect(error?.reason.hasPrefix("Line 1 of \(home.path)/.config/coffer/config.toml ") == true)
    try FileManager.default.removeItem(atPath: home.path + "/.config/coffer/config.toml")
    let (data, loop) = (home.path + "/data", home.path + "/data/coffer")
    try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: false)
    try FileManager.default.createSymbolicLink(atPath: loop, withDestinationPath: loop)
    let other = thrown { () throws(SecretError) in
      _ = try configuration(["XDG_DATA_HOME": data], keyring: true).choice()
    }
    #expect(other?.code == .io)
  }

  @Test func theKeyringSeesNoKeyVariables() throws {
    var environment = home.environment()
    for name in BackendConfiguration.keyVariables { environment[name] = "canary" }
    environment["COFFER_PASSPHRASE_FD"] = nil
    let configuration = BackendConfiguration(
      environment: environment,
      providers: [
        StubKeyring(isAvailable: true) { environment in
          #expect(environment["HOME"] != nil)
          #expect(!environment.values.contains("canary"))
        }
      ]
    )
    #expect(try configuration.choice().selection.name == .keyring)
  }

  // MARK: Backends

  @Test func theChosenBackendIsMade() throws {
    #expect(try configuration(keyring: true).backend() is MemoryBackend)
    let vault = try #require(configuration(keyring: true).backend(.vault) as? VaultBackend)
    #expect(vault.path == home.path + "/.local/share/coffer/default.vault")
    #expect(try (configuration(["COFFER_VAULT": "/x"]).backend() as? VaultBackend)?.path == "/x")
    #expect(configuration().vault(at: "/y").path == "/y")
    let error = thrown { () throws(SecretError) in _ = try configuration().backend(.keyring) }
    #expect(error?.code == .unavailable)
  }

  // MARK: Recorded settings

  @Test func recordedSettingsAreReadBack() throws {
    let other = String(id.reversed())
    #expect(try configuration().recordedKeyFile(forVault: id) == nil)
    try configuration().record(keyFile: "/keys/a key = \"#1\"", forVault: id)
    try configuration().record(backend: .vault)
    try configuration().record(keyFile: "/keys/2", forVault: other)
    try configuration().record(keyFile: "/keys/3", forVault: other)
    #expect(try configuration().recordedKeyFile(forVault: id) == "/keys/a key = \"#1\"")
    #expect(try configuration().recordedKeyFile(forVault: other) == "/keys/3")
    #expect(try configuration().choice().selection.name == .vault)
    #expect(
      try home.text(of: ".config/coffer/config.toml")
        == """
        backend = "vault"
        [key-files]
        \(id) = "/keys/a key = \\"#1\\""
        \(other) = "/keys/3"

        """
    )
  }

  /// So a copied home directory opens. A name that the parser would change, or take for absolute, is not shortened.
  @Test func aKeyFileBelowTheConfigurationDirectoryIsRecordedRelatively() throws {
    let directory = home.path + "/.config/coffer"
    for (path, recorded) in [
      ("\(directory)/key", "key"), ("\(directory)/a/b", "a/b"), ("\(directory)-2/key", "\(directory)-2/key"),
      ("\(directory)/ key\n", " key\\u000A"), ("\(directory)//key", "\(directory)//key"),
    ] {
      try configuration().record(keyFile: path, forVault: id)
      #expect(try home.text(of: ".config/coffer/config.toml") == "[key-files]\n\(id) = \"\(recorded)\"\n")
      #expect(try configuration().recordedKeyFile(forVault: id) == path)
    }
  }

  @Test func theConfigurationFileIsPrivate() throws {
    let configuration = configuration()
    try withUmask(0) { try configuration.record(backend: .vault) }
    #expect(try home.mode(of: ".config/coffer/config.toml") == 0o600)
    #expect(try home.mode(of: ".config/coffer") == 0o700)
  }

  @Test func commentsAreKept() throws {
    try home.write(
      "# mine\n\n  backend='keyring'\t#\n# end\n [key-files] #", to: ".config/coffer/config.toml")
    try configuration().record(backend: .vault)
    try configuration().record(keyFile: "/k", forVault: id)
    #expect(
      try home.text(of: ".config/coffer/config.toml")
        == "# mine\n\nbackend = \"vault\"\n# end\n [key-files] #\n\(id) = \"/k\"\n"
    )
  }

  @Test func aWrongFileIsNotChanged() throws {
    let text = "backend = \"vault\"\nbackground = \"red\"\n"
    try home.write(text, to: ".config/coffer/config.toml")
    #expect(
      thrown { () throws(SecretError) in try configuration().record(backend: .keyring) }?.code
        == .configuration
    )
    #expect(try home.text(of: ".config/coffer/config.toml") == text)
  }

  @Test(arguments: ["relative/key", "", "/nul\0", "/" + String(repeating: "x", count: 4096)])
  func aPathThatCannotBeReadBackIsRefused(path: String) throws {
    let error = thrown { () throws(SecretError) in try configuration().record(keyFile: path, forVault: id) }
    #expect(error?.code == .configuration)
    #expect(!FileManager.default.fileExists(atPath: home.path + "/.config/coffer/config.toml"))
  }

  @Test func aFileThatWouldBeTooLongToReadIsNotWritten() throws {
    let text = "#" + String(repeating: "x", count: 65_530) + "\n"
    try home.write(text, to: ".config/coffer/config.toml")
    let error = thrown { () throws(SecretError) in try configuration().record(backend: .vault) }
    #expect(error?.code == .configuration && error?.reason.contains("cannot hold the change") == true)
    #expect(try home.text(of: ".config/coffer/config.toml") == text)
    #expect(try configuration().recordedKeyFile(forVault: id) == nil)
  }

  @Test func concurrentWritersLoseNothing() async throws {
    let configuration = configuration()
    let ids = (0..<16).map { String(repeating: String($0, radix: 16), count: 32) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for id in ids {
        group.addTask {
          func record() throws(SecretError) { try configuration.record(keyFile: "/keys/\(id)", forVault: id) }
          // On a busy machine one write may take longer than the next one waits for it.
          for _ in 0..<10 {
            guard let error = thrown(record) else { return }
            if error.code != .timedOut { throw error }
          }
          try record()
        }
      }
      try await group.waitForAll()
    }
    for id in ids { #expect(try configuration.recordedKeyFile(forVault: id) == "/keys/\(id)") }
  }

  @Test func anErrorOfRecordingNamesTheFile() throws {
    // The directory cannot be created.
    let configuration = BackendConfiguration(environment: ["HOME": "/proc/no", "PATH": "/bin"])
    let error = try #require(thrown { () throws(SecretError) in try configuration.record(backend: .vault) })
    #expect([.io, .denied].contains(error.code))
    #expect(error.reason.contains("/proc/no"))
  }

  // MARK: The format of the file

  @Test(arguments: [
    ("backend", 1), ("backend =", 1), ("= 'vault'", 1), ("backend = vault", 1), ("backend = 'file'", 1),
    ("Backend = 'vault'", 1), ("# fine\ncolour = 'red'", 2), ("backend = 'vault'\nbackend = 'vault'", 2),
    ("[key-files]\nxyz = '/x'", 2), ("[key-files]\n0123456789ABCDEF0123456789ABCDEF = '/x'", 2),
    ("[key-files]\n0123456789abcdef0123456789abcdef = ''", 2), ("key-files = {}", 1), ("key-files = 'x'", 1),
    ("[key-files]\n0123456789abcdef0123456789abcdef = true", 2), ("[other]", 1),
    ("\u{FEFF}backend = 'vault'", 1), ("backend = 'vault:'", 1), ("backend = 'vault:x'", 1),
    ("backend = 'keyring:'", 1),
  ])
  func anErrorNamesTheWrongLine(text: String, line: Int) throws {
    try home.write(text, to: ".config/coffer/config.toml")
    let error = try #require(
      thrown { () throws(SecretError) in _ = try configuration().recordedKeyFile(forVault: id) }
    )
    #expect(error.code == .configuration)
    #expect(error.reason.hasPrefix("Line \(line) of \(home.path)/.config/coffer/config.toml "))
    #expect(error.advice != nil)
  }

  @Test func aPathToSomethingElseIsAnError() throws {
    let path = home.path + "/.config/coffer/config.toml"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    #expect(thrown { () throws(SecretError) in _ = try configuration().choice() }?.code == .configuration)
    try FileManager.default.removeItem(atPath: path)
    #expect(mkfifo(path, 0o600) == 0)
    #expect(thrown { () throws(SecretError) in _ = try configuration().choice() }?.code == .configuration)
    try FileManager.default.removeItem(atPath: path)
    try Data([0xFF, 0xFE]).write(to: URL(fileURLWithPath: path))
    #expect(thrown { () throws(SecretError) in _ = try configuration().choice() }?.code == .configuration)
    try Data(repeating: 10, count: 65_537).write(to: URL(fileURLWithPath: path))
    #expect(thrown { () throws(SecretError) in _ = try configuration().choice() }?.code == .configuration)
  }

  @Test func printingShowsNoEnvironment() {
    let configuration = configuration([
      "COFFER_KEY": "canary-1", "COFFER_PASSPHRASE_COMMAND": "echo canary-2", "OTHER_TOKEN": "canary-3",
    ])
    var dumped = "\(configuration)" + String(reflecting: configuration)
    dump(configuration, to: &dumped)
    #expect(!dumped.contains("canary"))
  }
}
