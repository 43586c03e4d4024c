import Coffer
import Foundation

@testable import TokenRefresh

/// A session bus with gnome-keyring, in a directory of their own. Both end with the object, and with the tests.
final class KeyringSession: Sendable {
  let environment: [String: String]
  let backend: KeyringBackend
  private let daemons: Program

  /// Starts both, and waits until the keyring is unlocked. With `isLocked`, it stays locked. Throws if a program is not
  /// installed.
  init(in directory: TemporaryDirectory, isLocked: Bool = false) async throws {
    for (program, package) in [("dbus-daemon", "dbus-daemon"), ("gnome-keyring-daemon", "gnome-keyring")] {
      guard Program.isInstalled(program) else {
        throw Failure("The tests of the keyring need \(program). Install the package \(package).")
      }
    }
    for name in ["home", "data/keyrings", "config", "cache", "run"] {
      try FileManager.default.createDirectory(
        atPath: directory.file(name), withIntermediateDirectories: true,
        attributes: [.posixPermissions: 0o700])
    }
    let socket = directory.file("run/bus")
    let configuration = """
      <busconfig><type>session</type><listen>unix:path=\(socket)</listen><auth>EXTERNAL</auth>
      <policy context="default"><allow send_destination="*" eavesdrop="true"/>
      <allow eavesdrop="true"/><allow own="*"/></policy></busconfig>
      """
    try Data(configuration.utf8).write(to: URL(fileURLWithPath: directory.file("bus.conf")))
    environment = [
      "HOME": directory.file("home"), "XDG_DATA_HOME": directory.file("data"),
      "XDG_CONFIG_HOME": directory.file("config"), "XDG_CACHE_HOME": directory.file("cache"),
      "XDG_RUNTIME_DIR": directory.file("run"), "DBUS_SESSION_BUS_ADDRESS": "unix:path=\(socket)",
      "COFFER_NO_PROMPT": "1", "LC_ALL": "C.UTF-8",
    ]
    let unlocking = isLocked ? "--start" : "--unlock"
    // `cat` ends when the tests close the pipe, and when the tests end.
    let script = """
      exec 2>/dev/null
      rm -f '\(socket)'
      dbus-daemon --config-file='\(directory.file("bus.conf"))' --nofork & bus=$!
      until [ -S '\(socket)' ] || ! kill -0 $bus; do sleep 0.05; done
      printf 'a password' | gnome-keyring-daemon \(unlocking) --components=secrets --foreground & keyring=$!
      cat
      kill $keyring $bus
      wait
      """
    daemons = try Program("/bin/sh", ["-c", script], environment)

    let backend = Self.backend(environment)
    self.backend = backend
    try await eventually("gnome-keyring has started") { try await backend.perform { try $0.isAvailable() } }
    if !isLocked { try await eventually("gnome-keyring is unlocked") { try await Self.isUnlocked(backend) } }
  }

  /// Whether the keyring stores a secret.
  private static func isUnlocked(_ backend: KeyringBackend) async throws -> Bool {
    let probe = try SecretIdentifier(service: "token-store-tests", account: "probe")
    do {
      try await backend.perform { try $0.store(SecretBytes("1"), for: probe) }
    } catch let error as SecretError where error.code == .locked {
      return false
    }
    return try await backend.perform { try $0.remove(probe) }
  }

  deinit { daemons.closeInput() }

  private static func backend(_ environment: [String: String]) -> KeyringBackend {
    var options = KeyringOptions(environment: environment)
    // For a slow machine.
    options.timeout = .seconds(120)
    return KeyringBackend(options: options, environment: environment)
  }

  /// Ends the bus and the keyring, and waits for it.
  func end() async throws {
    daemons.closeInput()
    _ = try await daemons.end()
  }
}
