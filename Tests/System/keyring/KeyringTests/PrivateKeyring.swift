#if Keyring
import CofferKeyring
import CofferTestSupport
import Foundation
import Testing

/// A session bus and a gnome-keyring daemon in a directory of their own. Nothing of the user's session is read, written
/// or started.
final class PrivateKeyring {
  enum Kind {
    /// The login keyring, encrypted with ``password``.
    case encrypted
    /// A default keyring without a password, which gnome-keyring stores as a text file.
    case passwordless
  }

  static let password = "a password"
  private let kind: Kind
  /// In memory, because the daemon syncs the whole keyring to the disk at each store.
  private let directory: TemporaryDirectory
  private var bus: ChildProcess?
  private var daemon: ChildProcess?
  /// Programs of `Fixtures`.
  private var programs: [ChildProcess] = []

  /// Starts the bus and, unless `startsDaemon` is `false`, the daemon, unlocked.
  init(_ kind: Kind = .encrypted, startsDaemon: Bool = true) async throws {
    self.kind = kind
    directory = try TemporaryDirectory(inMemory: true)
    for name in ["home", "data/keyrings", "config", "cache", "run", "services"] {
      try directory.makeDirectory(name)
    }
    if kind == .passwordless {
      try directory.write(
        "[keyring]\ndisplay-name=Default\nctime=0\nmtime=0\nlock-on-idle=false\nlock-after=false\n",
        to: "data/keyrings/Default.keyring")
      try directory.write("Default", to: "data/keyrings/default")
    }
    try await startBus()
    if startsDaemon { try await startDaemon() }
  }

  deinit {
    for program in programs { program.kill() }
    daemon?.kill()
    bus?.kill()
  }

  /// The environment of a program in this session. Prompts are not allowed.
  var environment: [String: String] {
    var result = [
      "HOME": path("home"), "XDG_DATA_HOME": path("data"), "XDG_CONFIG_HOME": path("config"),
      "XDG_CACHE_HOME": path("cache"), "XDG_RUNTIME_DIR": path("run"),
      "DBUS_SESSION_BUS_ADDRESS": "unix:path=\(path("run/bus"))", "COFFER_NO_PROMPT": "1",
      "PATH": InstalledPrograms.searchPath, "LC_ALL": "C.UTF-8",
    ]
    for name in ["PYENV_ROOT", "PYENV_VERSION"] {
      result[name] = ProcessInfo.processInfo.environment[name]
    }
    return result
  }

  func path(_ name: String) -> String { directory.file(name) }

  func write(_ text: String, to name: String) throws { try directory.write(text, to: name) }

  var status: KeyringStatus { KeyringBackend.probe(environment: environment) }

  func backend(_ change: (inout KeyringOptions) -> Void = { _ in }) -> KeyringBackend {
    var options = KeyringOptions(environment: environment)
    options.connectTimeout = .seconds(30)
    options.callTimeout = .seconds(60)
    change(&options)
    return KeyringBackend(options: options, environment: environment)
  }

  // MARK: Daemons

  func startBus() async throws {
    try directory.write(
      """
      <busconfig><type>session</type><listen>unix:path=\(path("run/bus"))</listen><auth>EXTERNAL</auth>
      <servicedir>\(path("services"))</servicedir>
      <limit name="max_message_size">1000000000</limit><limit name="max_incoming_bytes">1000000000</limit>
      <limit name="max_outgoing_bytes">1000000000</limit>
      <policy context="default"><allow send_destination="*" eavesdrop="true"/>
      <allow eavesdrop="true"/><allow own="*"/></policy></busconfig>
      """, to: "bus.conf")
    bus = try ChildProcess(
      ["dbus-daemon", "--config-file=\(path("bus.conf"))", "--nofork"], package: "dbus-daemon",
      environment: environment, endsWithTests: true)
    try await eventually("dbus-daemon did not start") {
      FileManager.default.fileExists(atPath: path("run/bus"))
    }
  }

  func killBus() throws {
    bus?.kill()
    try FileManager.default.removeItem(atPath: path("run/bus"))
  }

  func startDaemon(unlocking: Bool = true) async throws {
    let unlocks = unlocking && kind == .encrypted
    let input = try directory.write(unlocks ? Self.password : "", to: "password")
    daemon = try ChildProcess(
      ["gnome-keyring-daemon", unlocks ? "--unlock" : "--start", "--components=secrets", "--foreground"],
      package: "gnome-keyring", environment: environment, streams: [.file(input), .null, .null],
      endsWithTests: true)
    try await eventually("gnome-keyring-daemon did not start") {
      let status = status
      return status.isServiceRunning && (!unlocks || status.isLocked == false)
    }
  }

  /// Kills the daemon with SIGKILL.
  func killDaemon() async throws {
    daemon?.kill()
    daemon = nil
    try await eventually("gnome-keyring-daemon did not end") { !status.isServiceRunning }
  }

  func restartDaemon(unlocking: Bool = true) async throws {
    try await killDaemon()
    try await startDaemon(unlocking: unlocking)
  }

  // MARK: Programs

  /// Starts a program of `Fixtures`, which ends with this object at the latest.
  @discardableResult
  func start(_ script: String, _ arguments: [String]) throws -> ChildProcess {
    let script = try #require(Bundle.module.path(forResource: "Fixtures/\(script)", ofType: "py"))
    let program = try ChildProcess(
      [try InstalledPrograms.pythonWithDBus.get(), script] + arguments, environment: environment,
      endsWithTests: true)
    programs.append(program)
    return program
  }

  /// Starts a program of `Fixtures`, and waits until it is the Secret Service.
  func startService(_ script: String, _ arguments: [String]) async throws {
    try start(script, arguments)
    try await eventually("the scripted service did not start") {
      KeyringBackend.probe(environment: environment, timeout: .seconds(1)).isServiceRunning
    }
  }

  /// Ends the service that was started last.
  func killService() { programs.popLast()?.kill() }

  /// Calls a method of the bus, and returns the answer as text.
  @discardableResult
  func callBus(_ method: String, _ argument: String...) throws -> String {
    let command = ["dbus-send", "--session", "--print-reply=literal", "--dest=org.freedesktop.DBus", "/"]
    return try run(command + ["org.freedesktop.DBus." + method] + argument, package: "dbus-bin").outputText
  }

  /// Whether a program owns a name on the bus.
  func hasOwner(_ name: String) throws -> Bool {
    let answer = try callBus("NameHasOwner", "string:" + name)
    try #require(answer.contains("true") || answer.contains("false"), "\(answer)")
    return answer.contains("true")
  }

  /// Runs a program in this session to its end.
  @discardableResult
  func run(_ command: [String], package: String, input: String = "") throws -> ChildProcess.Result {
    try ChildProcess.run(command, package: package, environment: environment, input: Data(input.utf8))
  }
}
#endif
