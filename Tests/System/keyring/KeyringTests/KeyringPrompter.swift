#if Keyring
import CofferTestSupport
import Foundation
import Testing

/// Stands for the program that shows gnome-keyring's prompts, and counts them. It never answers.
struct KeyringPrompter {
  private let process: ChildProcess
  private let log: String

  init(_ keyring: PrivateKeyring) async throws {
    let script = try #require(Bundle.module.path(forResource: "Fixtures/prompter", ofType: "py"))
    let log = keyring.path("prompts.log")
    self.log = log
    process = try ChildProcess(
      [try InstalledPrograms.pythonWithDBus.get(), script, log], environment: keyring.environment,
      endsWithTests: true)
    try await eventually("the program for prompts did not start") {
      try keyring.run(
        [
          "dbus-send", "--session", "--print-reply", "--dest=org.freedesktop.DBus", "/",
          "org.freedesktop.DBus.NameHasOwner", "string:org.gnome.keyring.SystemPrompter",
        ], package: "dbus-bin"
      ).outputText.contains("true")
    }
  }

  /// The number of prompts so far.
  func count() throws -> Int {
    try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n").count
  }

  func kill() { process.kill() }
}
#endif
