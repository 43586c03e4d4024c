#if Keyring
import Foundation

/// Sessions with a Secret Service that follows a script, for behaviour that gnome-keyring shows only with a person at
/// the screen. `Fixtures/scripted_service.py` documents the modes, and `Fixtures/scripted_keyring.py` the deviations.
extension PrivateKeyring {
  convenience init(scripted mode: String...) async throws {
    try await self.init(startsDaemon: false)
    try await startService("scripted_service", [log] + mode)
  }

  /// With a service that keeps items. It logs no calls.
  convenience init(storingWith deviations: String...) async throws {
    try await self.init(startsDaemon: false)
    try await startService("scripted_keyring", [log] + deviations)
  }

  private var log: String { path("scripted.log") }

  /// The names of the methods that were called.
  func calls() throws -> [String] {
    try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n").map(String.init)
  }
}
#endif
