import CofferCore
import CofferTestSupport
import CofferVault
import Foundation
import Testing

@testable import CofferConfiguration

/// Where known vaults are recorded, and which policy the place of a vault chooses.
@Suite(.timeLimit(.minutes(30))) struct KnownVaultTests {
  let home: TemporaryDirectory
  /// A directory outside of the home directory.
  let elsewhere: TemporaryDirectory

  init() throws {
    home = try TemporaryDirectory()
    elsewhere = try TemporaryDirectory()
  }

  private let key = VaultCredential.key(SecretBytes([UInt8](repeating: 7, count: 32)))

  private func configuration(_ more: [String: String] = [:]) -> BackendConfiguration {
    BackendConfiguration(environment: home.environment(more), providers: [VaultProvider()])
  }

  private func vault(at path: String, _ more: [String: String] = [:]) -> VaultBackend {
    configuration(more).vault(at: path, credentials: [VaultCredentialSource("a fixed key", key)])
  }

  /// Creates a vault and returns its policy.
  private func policy(at path: String, _ policy: TrustPolicy? = nil) throws -> TrustPolicy {
    var options = VaultOptions()
    if let policy { options.firstUsePolicy = policy }
    try configuration().createVault(at: path, credential: key, options: options)
    return try vault(at: path).notices().contains(.versioned) ? .versioned : .strict
  }

  // MARK: The policy of a place

  private func makeRepository(in directory: TemporaryDirectory, _ name: String) throws -> String {
    try directory.makeDirectory("\(name)/d")
    try directory.write("ref: refs/heads/main\n", to: "\(name)/.git/HEAD")
    return directory.file("\(name)/d")
  }

  @Test func aWorkTreeHasARepository() throws {
    #expect(try policy(at: makeRepository(in: elsewhere, "repository") + "/v") == .versioned)
    try elsewhere.write("gitdir: /elsewhere", to: "submodule/.git")
    #expect(try policy(at: elsewhere.file("submodule/v")) == .versioned)
    try elsewhere.makeDirectory("empty/.git")
    #expect(try policy(at: elsewhere.file("empty/v")) == .strict)
    #expect(try policy(at: elsewhere.file("v")) == .strict)
  }

  @Test func thePathWithoutLinksDecidesWhetherItIsInAWorkTree() throws {
    let repository = try makeRepository(in: elsewhere, "repository")
    try elsewhere.makeDirectory("private")
    #expect(try policy(at: repository + "/../../private/v") == .strict)
    try FileManager.default.createSymbolicLink(
      atPath: elsewhere.file("link"), withDestinationPath: repository)
    #expect(try policy(at: elsewhere.file("link/v")) == .versioned)
    try FileManager.default.createSymbolicLink(
      atPath: repository + "/out", withDestinationPath: elsewhere.file("private"))
    #expect(try policy(at: repository + "/out/w") == .strict)
    try FileManager.default.createSymbolicLink(
      atPath: elsewhere.file("private/x"), withDestinationPath: repository + "/v")
    #expect(configuration().isInWorkTree(elsewhere.file("private/x")))
  }

  @Test(.enabled(if: getuid() == 0, "only root can give a directory to another user"))
  func theRepositoryOfAnotherUserDoesNotDecide() throws {
    let repository = try makeRepository(in: elsewhere, "repository")
    #expect(configuration().isInWorkTree(repository + "/v"))
    #expect(chown(elsewhere.file("repository/.git"), 1000, 1000) == 0)
    #expect(!configuration().isInWorkTree(repository + "/v"))
  }

  /// A neighbour could make them in /tmp, and an older copy of a vault below would be accepted.
  @Test func aRepositoryInADirectoryOfEverybodyDoesNotDecide() throws {
    let repository = elsewhere.file("repository")
    _ = try makeRepository(in: elsewhere, "repository")
    #expect(chmod(repository, 0o1777) == 0)
    #expect(!configuration().isInWorkTree(repository + "/v"))
    #expect(chmod(repository, 0o770) == 0)
    #expect(configuration().isInWorkTree(repository + "/v"))
  }

  @Test(.enabled(if: getuid() == 0, "only root can give a link to another user"))
  func aLinkOfAnotherUserToARepositoryDoesNotDecide() throws {
    let repository = elsewhere.file("repository")
    _ = try makeRepository(in: elsewhere, "repository")
    try elsewhere.makeDirectory("place")
    try FileManager.default.createSymbolicLink(
      atPath: elsewhere.file("place/.git"), withDestinationPath: repository + "/.git")
    #expect(configuration().isInWorkTree(elsewhere.file("place/v")))
    #expect(lchown(elsewhere.file("place/.git"), 1000, 1000) == 0)
    #expect(!configuration().isInWorkTree(elsewhere.file("place/v")))
    // The link is this user's, and what it leads to is not.
    #expect(lchown(elsewhere.file("place/.git"), 0, 0) == 0)
    #expect(chown(repository + "/.git", 1000, 1000) == 0)
    #expect(!configuration().isInWorkTree(elsewhere.file("place/v")))
  }

  /// A home directory may be a work tree.
  @Test func theDefaultVaultIsNotInAWorkTree() throws {
    try home.write("ref: refs/heads/main\n", to: ".git/HEAD")
    try home.makeDirectory(".local/share/coffer")
    #expect(try policy(at: home.file(".local/share/coffer/../coffer/default.vault")) == .strict)
    #expect(try policy(at: home.file(".local/share/coffer/other.vault")) == .versioned)
  }

  @Test func aPolicyThatAProgramChoosesIsKept() throws {
    #expect(try policy(at: makeRepository(in: elsewhere, "repository") + "/v", .strict) == .strict)
    #expect(try policy(at: elsewhere.file("v"), .versioned) == .versioned)
  }

  // MARK: Pins

  @Test func thePinsInTheEnvironmentAreForTheirVaults() throws {
    let paths = [elsewhere.file("a"), elsewhere.file("b")]
    for path in paths { try configuration().createVault(at: path, credential: key) }
    let pins = try paths.map { try vault(at: $0).pin() }
    try vault(at: paths[0], ["COFFER_PIN": pins[0]]).unlock()
    let bound = zip(paths, pins).map { "\($0)=\($1)" }
    try vault(at: paths[0], ["COFFER_PIN": " \(bound[1])\n\(bound[0])\t"]).unlock()
    // A variable that is set and empty is not taken for no pin.
    let refused: [String: SecretError.Code] = [
      pins[1]: .unexpectedVault, "\(pins[1]) \(pins[0])": .configuration,
      "\(paths[0])=\(pins[1])": .unexpectedVault, "": .configuration, " \n": .configuration,
      "x": .configuration,
      String(pins[0].dropLast()): .configuration,
    ]
    for (text, code) in refused {
      let error = #expect(throws: SecretError.self) { try vault(at: paths[0], ["COFFER_PIN": text]).unlock() }
      #expect(error?.code == code, "\(text)")
    }
  }

  @Test func thePinsOfAProgramCountInPlaceOfThoseInTheEnvironment() throws {
    let path = elsewhere.file("v")
    try configuration().createVault(at: path, credential: key)
    var options = VaultOptions()
    options.pins = [try vault(at: path).pin()]
    let configuration = configuration(["COFFER_PIN": "x"])
    try configuration.vault(
      at: path, credentials: [VaultCredentialSource("a fixed key", key)], options: options
    ).unlock()
  }

  @Test func aVaultIsMadeUnderAnyPin() throws {
    let path = elsewhere.file("v")
    try configuration().createVault(at: elsewhere.file("other"), credential: key)
    let pin = try vault(at: elsewhere.file("other")).pin()
    #expect(try configuration(["COFFER_PIN": pin]).createVault(at: path, credential: key))
    try vault(at: path).unlock()
  }

  // MARK: The directory of the records

  @Test(arguments: [["HOME": "/nonexistent"], ["HOME": "/proc/self"], ["XDG_STATE_HOME": "/proc/self/state"]])
  func withoutADirectoryForRecordsTheVaultWorksAndSaysSo(_ environment: [String: String]) throws {
    let path = elsewhere.file("v")
    try configuration(environment).createVault(at: path, credential: key)
    for _ in 1...2 {
      let notices = try vault(at: path, environment).notices()
      #expect(notices.contains(.unrecorded))
    }
    #expect(throws: SecretError.self) { try vault(at: path, environment).trust() }
    #expect(try !vault(at: path).notices().contains(.unrecorded))
  }

  @Test func somethingElseInPlaceOfTheDirectoryIsAnError() throws {
    let path = elsewhere.file("v")
    try configuration().createVault(at: path, credential: key)
    let records = home.file(".local/state/coffer/known-vaults")
    try FileManager.default.removeItem(atPath: records)
    try home.write("", to: ".local/state/coffer/known-vaults")
    let error = #expect(throws: SecretError.self) { try vault(at: path).unlock() }
    #expect(error?.code == .unverifiable)
    #expect(error?.reason.contains(records) == true)
    try FileManager.default.removeItem(atPath: records)
    try FileManager.default.createSymbolicLink(atPath: records, withDestinationPath: "missing")
    #expect(throws: SecretError.self) { try vault(at: path).unlock() }
  }

  @Test(.enabled(if: getuid() == 0, "only root can give a directory to another user"))
  func nothingIsCreatedInADirectoryOfAnotherUser() throws {
    let path = elsewhere.file("v")
    // The home directory is root's, and the directory in it is not.
    try home.makeDirectory(".local")
    #expect(chown(home.file(".local"), 1000, 1000) == 0)
    try configuration().createVault(at: path, credential: key)
    #expect(try vault(at: path).notices().contains(.unrecorded))
    #expect(try FileManager.default.contentsOfDirectory(atPath: home.file(".local")) == [])
    try home.makeDirectory(".local/state/coffer/known-vaults")
    #expect(chown(home.file(".local/state/coffer/known-vaults"), 1000, 1000) == 0)
    let error = #expect(throws: SecretError.self) { try vault(at: path).unlock() }
    #expect(error?.code == .unverifiable)
    #expect(error?.advice?.contains("HOME") == true)
  }

  /// As with a configuration of sudo that keeps `HOME`.
  @Test(.enabled(if: getuid() == 0, "only root can give a directory to another user"))
  func rootUsesNothingInTheHomeOfAnotherUser() throws {
    try home.write("backend = \"vault\"\n", to: ".config/coffer/config.toml")
    #expect(chown(home.path, 1000, 1000) == 0)
    let configuration = configuration()
    let paths = [
      configuration.configurationFile, configuration.defaultKeyFile, configuration.vaultPath,
    ]
    for path in paths {
      #expect(!path.hasPrefix(home.path), "\(path)")
    }
  }
}
