@testable import Coffer
import CofferTestSupport
import CofferCore
import CofferVault
import Foundation
import Testing

@testable import CofferConfiguration

/// The sources of keys, whose text is parsed.
@Suite(.timeLimit(.minutes(30))) struct KeySourceTests {
  let home: TemporaryDirectory
  let vault: VaultDescription
  let text: String
  let key: [UInt8]

  init() throws {
    home = try TemporaryDirectory()
    vault = VaultDescription(
      path: "/x.vault",
      id: String(repeating: "0123456789abcdef", count: 2)
    )
    let key = VaultKey.generate()
    text = try VaultKey.text(of: key).string()
    self.key = key.array()
  }

  private func configuration(_ more: [String: String]) -> BackendConfiguration {
    BackendConfiguration(environment: home.environment(more))
  }

  private func first(_ configuration: BackendConfiguration) throws(SecretError) -> [UInt8]? {
    guard let credential = try configuration.credentials()[0].credential(for: vault) else { return nil }
    guard credential.kind == .key else { return nil }
    return credential.secret.array()
  }

  @Test func aKeyIsReadFromEachSource() throws {
    let file = try home.write(text + "\n", to: "coffer.key")
    #expect(try first(configuration(["COFFER_KEY_FILE": file])) == key)
    #expect(try first(configuration(["COFFER_KEY": text])) == key)
    #expect(try first(configuration(["CREDENTIALS_DIRECTORY": home.path])) == key)
    #expect(try first(configuration([:])) == nil)
    try configuration([:]).record(keyFile: file, forVault: vault.id)
    #expect(try first(configuration([:])) == key)
    try FileManager.default.removeItem(atPath: file)
    let error = try #require(thrown { () throws(SecretError) in _ = try first(configuration([:])) })
    #expect(error.code == .configuration)
    #expect(error.reason.contains(file) && error.reason.contains(configuration([:]).configurationFile))
  }

  @Test func aMistypedKeyIsAnErrorThatNamesOnlyTheSource() throws {
    let mistyped = String(text.dropLast()) + (text.last == "A" ? "B" : "A")
    let file = try home.write(mistyped, to: "key")
    for (name, value) in [("COFFER_KEY", mistyped), ("COFFER_KEY_FILE", file), ("COFFER_KEY", "hunter22")] {
      let error = try #require(
        thrown { () throws(SecretError) in _ = try first(configuration([name: value])) }
      )
      #expect(error.code == .invalidKey)
      #expect(error.reason.contains(name))
      var dumped = "\(error)"
      dump(error, to: &dumped)
      #expect(!dumped.contains(mistyped.dropFirst(20)) && !dumped.contains("hunter22"))
    }
    #expect(
      thrown { () throws(SecretError) in _ = try first(configuration(["COFFER_KEY": ""])) }?.code
        == .configuration
    )
  }

  @Test func identitiesAreReadWhereAKeyIs() throws {
    let identity = try VaultIdentity.generate(isPostQuantum: false)
    let path = home.path + "/x.vault"
    try VaultBackend.create(at: path, credential: .recipient(#require(identity.recipient)))
    let text = try identity.text().string()
    let file = try home.write("# created: today\n\(text)\n", to: "identity")
    let sources = [["COFFER_KEY": text], ["COFFER_KEY_FILE": file]]
    // Anyone can make a vault for a recipient, and nothing was seen of this one.
    for source in sources {
      #expect(
        thrown { () throws(SecretError) in try configuration(source).vault(at: path).unlock() }?.code
          == .untrusted)
    }
    let closure = VaultCredentialSource("the test", .identities([identity]))
    let pin = try VaultBackend(path: path, credentials: [closure]).trust()
    for source in sources {
      try configuration(source.merging(["COFFER_PIN": pin]) { $1 }).vault(at: path).unlock()
    }
  }

  @Test func theEnvironmentOpensTheVaultOfAValue() throws {
    let path = home.path + "/x.vault"
    let configuration = configuration(["COFFER_VAULT": path, "COFFER_KEY": text])
    try VaultBackend.create(at: path, credential: .key(SecretBytes(key)))
    let source = BackendSource { () throws(SecretError) in try configuration.backend() }
    let token = SecurelyStoredValue<String>(key: "token", service: "tests", source: source)
    #expect(try token.get() == nil)
    try token.set("one")
    #expect(try token.get() == "one")
    #expect(try configuration.vault().text("token") == "one")

    let stranger = BackendConfiguration(environment: home.environment(["COFFER_VAULT": path]))
    let identifier = try SecretIdentifier(service: "tests", account: "token")
    #expect(thrown { () throws(SecretError) in _ = try stranger.vault().lookUp(identifier) }?.code == .locked)
  }
}
