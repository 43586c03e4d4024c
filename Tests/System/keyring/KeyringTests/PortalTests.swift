#if Keyring
import CofferCore
import CofferKeyring
import CofferTestSupport
import CofferVault
import Foundation
import Testing

@testable import CofferConfiguration

/// A vault that the Secret portal opens, with a scripted portal. `Fixtures/scripted_portal.py` documents the modes.
@Suite(.needsKeyring, .serialized) struct PortalTests {
  private let keyring: PrivateKeyring
  private let identifier: SecretIdentifier
  private let secret = String(repeating: "5a", count: 64)

  init() async throws {
    keyring = try await PrivateKeyring(startsDaemon: false)
    identifier = try SecretIdentifier(service: "svc", account: "alice")
    try keyring.write("[Application]\nname=org.example.App\n", to: "flatpak-info")
  }

  @discardableResult
  private func startPortal(_ mode: String, _ secret: String) async throws -> ChildProcess {
    let portal = try keyring.start("scripted_portal", [keyring.path("portal.log"), secret, mode])
    try await eventually("the scripted portal did not start") { try configuration().hasSecretPortal() }
    return portal
  }

  private func configuration(
    inFlatpak: Bool = true, timeout: Duration = .seconds(60)
  ) -> BackendConfiguration {
    var environment = keyring.environment
    environment["COFFER_NO_PROMPT"] = nil
    var result = BackendConfiguration(
      environment: environment, providers: BackendRegistry.providers,
      flatpakInfo: keyring.path(inFlatpak ? "flatpak-info" : "nothing"))
    result.timeout = timeout
    return result
  }

  private func createVault() throws { _ = try configuration().createPortalVault() }

  private func tokens() throws -> [String] {
    try String(contentsOfFile: keyring.path("portal.log"), encoding: .utf8).split(separator: "\n").map(
      String.init)
  }

  @Test(arguments: ["answer", "early", "other-path"])
  func thePortalOpensTheVaultAndGetsItsTokenBack(_ mode: String) async throws {
    try await startPortal(mode, secret)
    try createVault()
    #expect(try configuration().choice().selection.name == .vault)
    try await configuration().backend().store("value", identifier)
    #expect(try await configuration().backend().text(identifier) == "value")
    #expect(try tokens().first == "no token")
    #expect(try Set(tokens().dropFirst()) == ["a token"])
  }

  @Test func theDerivedKeyAloneOpensTheVault() async throws {
    try await startPortal("answer", secret)
    try createVault()
    func isOpened(by key: @escaping @Sendable () -> SecretBytes) -> Bool {
      let source = VaultCredentialSource("a key") { _ throws(SecretError) in .key(key()) }
      return thrown { () throws(SecretError) in
        _ = try configuration().vault(at: nil, credentials: [source]).lookUp(identifier)
      } == nil
    }
    #expect(
      isOpened { VaultKey.derived(fromPortal: SecretBytes([UInt8](repeating: 0x5A, count: 64))) })
    #expect(!isOpened { SecretBytes([UInt8](repeating: 0x5A, count: 32)) })
  }

  @Test func theRecoveryKeyOpensTheVaultAfterTheKeyringWasReset() async throws {
    let portal = try await startPortal("answer", secret)
    let recovery = try configuration().createPortalVault()
    try await configuration().backend().store("value", identifier)
    portal.kill()
    try await eventually("the scripted portal did not end") { try !configuration().hasSecretPortal() }
    try await startPortal("answer", String(repeating: "77", count: 64))
    await #expect(throws: SecretError.self) { _ = try await configuration().backend().text(identifier) }
    try configuration().restorePortalVault(recoveryKey: recovery)
    #expect(try await configuration().backend().text(identifier) == "value")
  }

  @Test(arguments: [
    ("refuse", SecretError.Code.promptDismissed), ("silent", .timedOut), ("open", .timedOut), ("empty", .io),
  ])
  func aPortalWithoutASecretIsAnError(_ mode: String, _ code: SecretError.Code) async throws {
    try await startPortal(mode, secret)
    do throws(SecretError) {
      _ = try configuration(timeout: .seconds(code == .timedOut ? 3 : 60)).createPortalVault()
      Issue.record("a vault was created")
    } catch {
      #expect(error.code == code)
    }
    #expect(!FileManager.default.fileExists(atPath: configuration().vaultPath))
  }

  @Test func withoutAVaultTheAdviceNamesThePortal() async throws {
    try await startPortal("answer", secret)
    func advice(_ configuration: BackendConfiguration) -> String {
      do throws(SecretError) {
        _ = try configuration.choice()
        return ""
      } catch {
        return error.advice ?? ""
      }
    }
    #expect(advice(configuration()).contains("createPortalVault"))
    #expect(!advice(configuration()).contains("Secret Service"))
    #expect(advice(configuration(inFlatpak: false)).contains("Secret Service"))
  }

  @Test func outsideOfAFlatpakThePortalIsNotAsked() async throws {
    try await startPortal("answer", secret)
    #expect(try !configuration(inFlatpak: false).hasSecretPortal())
    #expect(throws: SecretError.self) { _ = try configuration(inFlatpak: false).createPortalVault() }
    #expect(!FileManager.default.fileExists(atPath: keyring.path("portal.log")))
  }
}
#endif
