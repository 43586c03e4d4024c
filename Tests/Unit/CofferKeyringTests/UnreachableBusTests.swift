#if Keyring
import CofferCore
import CofferKeyring
import CofferTestSupport
import Testing

/// A backend whose bus does not exist or does not answer.
@Suite struct UnreachableBusTests {
  @Test(arguments: [nil, "", "unix:path=DIRECTORY/none", "autolaunch:", "autolaunch:scope=*install-path"])
  func withoutABusEveryCallIsUnavailable(_ address: String?) async throws {
    let directory = try TemporaryDirectory()
    let environment = [
      "XDG_RUNTIME_DIR": directory.path,
      "DBUS_SESSION_BUS_ADDRESS": address?.replacing("DIRECTORY", with: directory.path) ?? "",
    ]
    try await expectEveryCall(of: KeyringBackend(environment: environment), toThrow: .unavailable)
    #expect(try !KeyringBackend(environment: environment).isAvailable())
    #expect(KeyringBackend.probe(environment: environment).problem?.code == .unavailable)
  }

  @Test func withAnInvalidAddressEveryCallIsAConfigurationError() async throws {
    let backend = KeyringBackend(environment: ["DBUS_SESSION_BUS_ADDRESS": "nonsense"])
    try await expectEveryCall(of: backend, toThrow: .configuration)
  }

  /// An empty variable stands for the socket in the runtime directory.
  @Test(arguments: ["unix:path=DIRECTORY/bus", ""])
  func aBusThatDoesNotAnswerTimesOut(_ address: String) async throws {
    let directory = try TemporaryDirectory()
    let socket = try ListeningSocket(directory.file("bus"))
    defer { socket.close() }
    var options = KeyringOptions(environment: [:])
    options.connectTimeout = .milliseconds(200)
    let backend = KeyringBackend(
      options: options,
      environment: [
        "DBUS_SESSION_BUS_ADDRESS": address.replacing("DIRECTORY", with: directory.path),
        "XDG_RUNTIME_DIR": directory.path,
      ])
    try await expectEveryCall(of: backend, toThrow: .timedOut)
    #expect(
      thrown { () throws(SecretError) in _ = try backend.isAvailable() }?.code == .timedOut,
      "a bus that hangs is not a missing keyring")
  }

  @Test func aPortalOnABusThatDoesNotAnswerIsNotMissing() throws {
    let directory = try TemporaryDirectory()
    let socket = try ListeningSocket(directory.file("bus"))
    defer { socket.close() }
    let portal = SecretPortal(environment: ["DBUS_SESSION_BUS_ADDRESS": "unix:path=\(directory.file("bus"))"])
    #expect(
      thrown { () throws(SecretError) in _ = try portal.isAvailable(timeout: .milliseconds(200)) }?.code
        == .timedOut)
  }

  @Test func theEnvironmentDecidesWhetherPromptsAreAllowed() {
    func mayPrompt(_ environment: [String: String]) -> Bool {
      KeyringOptions(environment: environment).mayPrompt
    }
    #expect(mayPrompt(["DISPLAY": ":0"]))
    #expect(mayPrompt(["WAYLAND_DISPLAY": "wayland-0"]))
    #expect(!mayPrompt([:]))
    #expect(!mayPrompt(["DISPLAY": "", "TERM": "xterm"]))
    #expect(!mayPrompt(["DISPLAY": ":0", "COFFER_NO_PROMPT": "1"]))
  }
}
#endif
