#if Keyring
import CofferKeyring
import CofferTestSupport
import Foundation

/// A session bus and a gnome-keyring daemon of a test's own, in a directory of its own. Nothing of the
/// user's is read, written or started.
final class PrivateKeyring {
  enum Kind {
    /// The login keyring, encrypted with ``password``.
    case encrypted
    /// A default keyring without a password, which gnome-keyring writes as text.
    case passwordless
  }

  static let password = "a password"
  let directory: URL
  let kind: Kind
  private var bus: ChildProcess?
  private var daemon: ChildProcess?
  private let temporaryDirectory: TemporaryDirectory

  /// With the daemon running and, where it is encrypted, unlocked.
  init(_ kind: Kind = .encrypted, startsDaemon: Bool = true, servicesDirectory: Bool = false) throws {
    self.kind = kind
    temporaryDirectory = try TemporaryDirectory()
    directory = URL(fileURLWithPath: temporaryDirectory.path)
    for name in ["home", "data/keyrings", "config", "cache", "run", "services"] {
      try temporaryDirectory.makeDirectory(name)
    }
    if kind == .passwordless {
      let text =
        "[keyring]\ndisplay-name=Default\nctime=0\nmtime=0\nlock-on-idle=false\nlock-after=false\n"
      try Data(text.utf8).write(to: directory.appendingPathComponent("data/keyrings/Default.keyring"))
      try Data("Default".utf8).write(to: directory.appendingPathComponent("data/keyrings/default"))
    }
    try startBus(servicesDirectory: servicesDirectory)
    if startsDaemon { try startDaemon() }
  }

  deinit {
    daemon?.kill()
    bus?.kill()
  }

  /// What a program on this desktop has in its environment. Nothing may be prompted.
  var environment: [String: String] {
    var result = [
      "HOME": path("home"), "XDG_DATA_HOME": path("data"), "XDG_CONFIG_HOME": path("config"),
      "XDG_CACHE_HOME": path("cache"), "XDG_RUNTIME_DIR": path("run"),
      "DBUS_SESSION_BUS_ADDRESS": "unix:path=\(path("run/bus"))", "COFFER_NO_PROMPT": "1",
      "PATH": ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin", "LC_ALL": "C.UTF-8",
    ]
    for name in ["PYENV_ROOT", "PYENV_VERSION"] {
      result[name] = ProcessInfo.processInfo.environment[name]
    }
    return result
  }

  func path(_ name: String) -> String { directory.appendingPathComponent(name).path }

  func backend(_ change: (inout KeyringOptions) -> Void = { _ in }) -> KeyringBackend {
    var options = KeyringOptions(environment: environment)
    options.connectTimeout = .seconds(30)
    options.callTimeout = .seconds(60)
    change(&options)
    return KeyringBackend(options: options, environment: environment)
  }

  private func startBus(servicesDirectory: Bool) throws {
    let services = servicesDirectory ? "<servicedir>\(path("services"))</servicedir>" : ""
    let configuration = """
      <busconfig><type>session</type><listen>unix:path=\(path("run/bus"))</listen><auth>EXTERNAL</auth>
      \(services)<policy context="default"><allow send_destination="*" eavesdrop="true"/>
      <allow eavesdrop="true"/><allow own="*"/></policy></busconfig>
      """
    try Data(configuration.utf8).write(to: directory.appendingPathComponent("bus.conf"))
    bus = try ChildProcess(
      ["dbus-daemon", "--config-file=\(path("bus.conf"))", "--nofork"], package: "dbus",
      environment: environment, endsWithTests: true)
    try waitUntil("the bus did not start") { FileManager.default.fileExists(atPath: path("run/bus")) }
  }

  /// Starts the daemon and waits for it.
  func startDaemon(unlocking: Bool = true) throws {
    daemon = try daemonProcess(unlocking: unlocking)
    try waitUntil("gnome-keyring-daemon did not start") {
      let status = KeyringBackend.probe(environment: environment)
      return status.isServiceRunning
        && (kind == .passwordless || !unlocking || status.isLocked == false)
    }
  }

  private func daemonProcess(unlocking: Bool) throws -> ChildProcess {
    let unlocks = unlocking && kind == .encrypted
    let input = try temporaryDirectory.write(unlocks ? Self.password : "", to: "password")
    return try ChildProcess(
      ["gnome-keyring-daemon", unlocks ? "--unlock" : "--start", "--components=secrets", "--foreground"],
      package: "gnome-keyring", environment: environment, streams: [.file(input), .null, .null],
      endsWithTests: true)
  }

  /// Kills the daemon with a signal that it cannot catch.
  func killDaemon() throws {
    daemon?.kill()
    daemon = nil
    try waitUntil("gnome-keyring-daemon is still there") {
      !KeyringBackend.probe(environment: environment).isServiceRunning
    }
  }

  func restartDaemon(unlocking: Bool = true) throws {
    try killDaemon()
    try startDaemon(unlocking: unlocking)
  }

  func killBus() { bus?.kill() }
  func restartBus() throws {
    bus?.kill()
    try FileManager.default.removeItem(atPath: path("run/bus"))
    try startBus(servicesDirectory: false)
  }

  /// Runs a program of the same session to its end, and gives its standard output.
  @discardableResult
  func run(
    _ program: String,
    _ arguments: [String],
    package: String,
    input: String = ""
  ) throws -> (status: Int32, output: String) {
    let result = try ChildProcess.run(
      [program] + arguments, package: package, environment: environment, input: Data(input.utf8))
    return (result.status, result.outputText)
  }
}

func milliseconds(_ body: () throws -> Void) rethrows -> Int {
  let start = ContinuousClock.now
  try body()
  return Int((ContinuousClock.now - start) / .milliseconds(1))
}
#endif
