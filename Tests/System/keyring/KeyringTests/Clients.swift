#if Keyring
import CofferTestSupport
import Foundation
import Testing

/// `secret-tool` and Python's keyring, for the service `svc` in one session.
struct Clients {
  let keyring: PrivateKeyring

  private func secretTool(_ command: String..., account: String, attributes: [String], input: String = "")
    throws -> ChildProcess.Result
  {
    try keyring.run(
      ["secret-tool"] + command + ["service", "svc", "username", account] + attributes,
      package: "libsecret-tools", input: input)
  }

  func secretToolStore(_ text: String, account: String = "alice", attributes: [String] = []) throws {
    let result = try secretTool(
      "store", "--label=From secret-tool", account: account, attributes: attributes, input: text)
    #expect(result.status == 0, "\(result.errorText)")
  }

  func secretToolLookup(attributes: [String] = []) throws -> String {
    try secretTool("lookup", account: "alice", attributes: attributes).outputText
  }

  func secretToolClear(account: String = "alice") throws {
    _ = try secretTool("clear", account: account, attributes: [])
  }

  /// The number of items that `secret-tool` finds.
  func itemCount() throws -> Int {
    try keyring.run(["secret-tool", "search", "--all", "service", "svc"], package: "libsecret-tools")
      .outputText.split(separator: "\n").filter { $0.hasPrefix("[/") }.count
  }

  /// An item as a program sees it that asks for all items.
  struct Item: Decodable {
    let label: String
    let value: String
    let attributes: [String: String]
  }

  /// Creates an item, also if there is one with the same attributes.
  func createItem(_ label: String, _ value: String, _ attributes: [String: String]) throws {
    _ = try secretStorage(["create", label, value] + attributes.map { "\($0.key)=\($0.value)" })
  }

  /// All items of the default collection.
  func items() throws -> [Item] {
    try JSONDecoder().decode([Item].self, from: Data(secretStorage(["list"]).utf8))
  }

  /// Locks the default collection.
  func lock() throws { _ = try secretStorage(["lock"]) }

  /// Unlocks the default collection without a prompt.
  func unlock() throws { _ = try secretStorage(["unlock", PrivateKeyring.password]) }

  private func secretStorage(_ arguments: [String]) throws -> String {
    let script = try #require(Bundle.module.path(forResource: "Fixtures/items", ofType: "py"))
    let result = try keyring.run(
      [InstalledPrograms.pythonWithKeyring.get(), script] + arguments, package: "python3-secretstorage")
    #expect(result.status == 0, "\(result.errorText)")
    return result.outputText
  }

  func pythonSet(_ text: String) throws {
    // Python's keyring drops one final line feed, and keyring 23.9 drops the value if there is none.
    _ = try python("set", input: text + "\n")
  }

  func pythonGet() throws -> String {
    try python("get").trimmingCharacters(in: .newlines)
  }

  private func python(_ operation: String, input: String = "") throws -> String {
    let script = try #require(Bundle.module.path(forResource: "Fixtures/patient_keyring", ofType: "py"))
    let result = try keyring.run(
      [
        InstalledPrograms.pythonWithKeyring.get(), script, "-b", "keyring.backends.SecretService.Keyring",
        operation, "svc", "alice",
      ], package: "python3-keyring", input: input)
    #expect(result.status == 0, "\(result.errorText)")
    return result.outputText
  }
}

/// Waits until the next second begins. The service's times are in whole seconds: of two changes within one second, the
/// order of creation decides.
func waitForNextSecond() async throws {
  let now = Date().timeIntervalSince1970
  try await Task.sleep(for: .seconds(now.rounded(.down) + 1.02 - now))
}
#endif
