#if Keyring
import CofferKeyring
import CofferTestSupport
import Foundation
import Testing

/// A Secret Service that follows a script, for behaviour that gnome-keyring shows only with a person at the
/// screen. `Fixtures/scripted_service.py` documents the modes, and `Fixtures/scripted_keyring.py` the deviations.
struct ScriptedService {
  private let process: ChildProcess
  private let log: String

  init(_ keyring: PrivateKeyring, _ mode: String...) async throws {
    try await self.init(keyring, "scripted_service", mode)
  }

  /// A service that keeps items. It logs no calls.
  init(_ keyring: PrivateKeyring, storingWith deviations: String...) async throws {
    try await self.init(keyring, "scripted_keyring", deviations)
  }

  private init(_ keyring: PrivateKeyring, _ script: String, _ arguments: [String]) async throws {
    let script = try #require(Bundle.module.path(forResource: "Fixtures/\(script)", ofType: "py"))
    log = keyring.path("scripted.log")
    process = try ChildProcess(
      [try InstalledPrograms.pythonWithDBus.get(), script, log] + arguments,
      environment: keyring.environment, endsWithTests: true)
    try await eventually("the scripted service did not start") {
      KeyringBackend.probe(environment: keyring.environment, timeout: .seconds(1)).isServiceRunning
    }
  }

  /// The names of the methods that were called.
  func calls() throws -> [String] {
    try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n").map(String.init)
  }

  func kill() { process.kill() }
}
#endif
