#if Keyring
import CofferKeyring
import CofferTestSupport
import Foundation

/// A Secret Service that follows a script, for what the real one does only with a person at hand.
/// `Fixtures/scripted_service.py` says what the arguments mean.
struct ScriptedService {
  private let process: ChildProcess
  private let log: String

  init(_ keyring: PrivateKeyring, _ arguments: [String]) throws {
    guard let script = Bundle.module.url(forResource: "Fixtures/scripted_service", withExtension: "py")
    else {
      throw TestFailure("The scripted service is not among the tests' resources.")
    }
    let test = ["-c", "import dbus, dbus.mainloop.glib, gi.repository.GLib"]
    guard
      let python = try ["/usr/bin/python3", "python3"].first(where: {
        try keyring.run($0, test, package: "python3").status == 0
      })
    else {
      throw TestFailure("These tests need Python's dbus module. Install the package python3-dbusmock.")
    }
    log = keyring.path("scripted.log")
    process = try ChildProcess(
      [python, script.path, log] + arguments, package: "python3", environment: keyring.environment,
      endsWithTests: true)
    try waitUntil("the scripted service did not start") {
      KeyringBackend.probe(environment: keyring.environment, timeout: .seconds(1)).isServiceRunning
    }
  }

  /// The calls it got, one a line.
  func calls() throws -> [String] {
    try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n").map(String.init)
  }

  func kill() { process.kill() }
}
#endif
