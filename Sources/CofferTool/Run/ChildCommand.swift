internal import Coffer
internal import CofferSystem
internal import CofferLibc

/// The command of `run` as a child of this process, which removes the command's files when it has ended, and starts it
/// again when its secrets change. With `isRedacted`, the child is the relay of the command's output.
final class ChildCommand {
  private let program: ProgramFile
  private let arguments: ProgramFile.Vector
  private let (isPristine, isRedacted): (Bool, Bool)
  /// The environment for the next start. With a relay, it is in the ``CommandLaunch`` with the descriptor `launch`.
  private var environment: CommandEnvironment?
  private var launch: Int32?
  /// What the command was given, if it is restarted.
  private var given = SecretEnvironment()
  /// The files of the command that runs, and those for the next start.
  private var files: [ValueFiles] = []

  init(_ program: ProgramFile, _ arguments: ProgramFile.Vector, isPristine: Bool, isRedacted: Bool) {
    (self.program, self.arguments) = (program, arguments)
    (self.isPristine, self.isRedacted) = (isPristine, isRedacted)
  }

  /// Runs the command to its end. With `changes`, which began before `secrets` were read from `backend`, restarts it.
  func run(
    _ secrets: consuming SecretEnvironment, of backend: any SecretBackend,
    restartedAfter changes: AsyncStream<SecretChange>?
  ) throws -> ProcessEnd {
    // Blocked while a file exists, because a signal that ends this process would leave the file behind.
    let signals = try BlockedSignals(ForegroundChild.signals)
    defer { files.forEach { $0.wipe() } }
    try prepare(secrets)
    let name = isRedacted ? "secret" : arguments.pointee.map { String(cString: $0) } ?? ""
    var restart: CommandRestart?
    if let changes {
      WatchThread.noteMissingEvents()
      restart = try CommandRestart(after: changes, of: secrets.secrets, isRelay: isRedacted) {
        [unowned self] in prepareAgain(from: backend.withoutPrompts)
      }
      given = secrets
    } else {
      _ = consume secrets
      try backend.close()
    }
    return try ForegroundChild.run(named: name, mask: signals.previous, restart: restart, start: start)
  }

  private func prepare(_ secrets: borrowing SecretEnvironment) throws(SecretError) {
    if secrets.hasFiles { files.append(try ValueFiles(for: .run)) }
    if isRedacted {
      launch = try secrets.launch(isPristine: isPristine, files: files.last)
    } else {
      environment = try secrets.environment(isPristine: isPristine, files: files.last)
    }
  }

  /// Prepares the next start if a value has changed. If a secret cannot be read, says that the values stay.
  private func prepareAgain(from backend: any SecretBackend) -> Bool {
    do {
      var changed: Set<SecretIdentifier> = []
      let current = try given.current(in: backend, changed: &changed)
      if changed.isEmpty { return false }
      try prepare(current)
      given = consume current
      let names = changed.sorted().map { "“\($0.account)”" }.joined(separator: ", ")
      note("secret: Restarting the command, because \(names) changed.")
      return true
    } catch {
      let reason = Failure(error)?.message ?? "\(error)"
      note("secret: The command was not restarted, and keeps the values that it has. \(reason)")
      return false
    }
  }

  private func start(_ spawn: inout Spawn) throws(FileSystemError) -> pid_t {
    while files.count > 1 { files.removeFirst().wipe() }
    if let launch {
      defer { close(launch) }
      return try OwnProgram.start(.relay, ["\(launch)"], program, arguments, spawn)
    }
    guard let environment = environment.take() else { throw FileSystemError(EINVAL) }
    return try program.start(spawn, arguments, environment)
  }
}
