internal import CLinux
internal import CofferSystem
internal import CofferLibc

/// This program, executed anew for a part of `run --redact`.
enum OwnProgram {
  /// A part, by the first argument. The command's file and arguments are the last arguments.
  enum Part: String {
    /// Relays the output of a command: the descriptor of a ``CommandLaunch`` follows.
    case relay = "run:relay"
    /// Leads the session of a command: the descriptors of a ``CommandLaunch``, of the terminal and of the channel
    /// follow, and then `foreground` or `background`.
    case session = "run:session"

    var settings: Int { self == .relay ? 1 : 4 }
  }

  private static var path: [CChar] {
    access("/proc/self/exe", F_OK) == 0
      ? Array("/proc/self/exe".utf8CString)
      : CommandLine.unsafeArgv[0].map { Array(UnsafeBufferPointer(start: $0, count: strlen($0) + 1)) } ?? [0]
  }

  private static func withArguments<R, E: Error>(
    _ part: Part, _ settings: [String], _ file: ProgramFile, _ arguments: ProgramFile.Vector,
    _ body: (ProgramFile.Vector) throws(E) -> R
  ) throws(E) -> R {
    let owned = (["secret", part.rawValue] + settings).map { strdup($0) } + [strdup(file.path)]
    defer { owned.forEach { free($0) } }
    return try body(owned + arguments.strings + [nil])
  }

  /// Replaces this process by a part. Returns the `errno`.
  static func execute(
    _ part: Part, _ settings: [String], _ file: ProgramFile, _ arguments: ProgramFile.Vector
  ) -> Int32 {
    withArguments(part, settings, file, arguments) { vector in
      execv(path, vector)
      return errno
    }
  }

  static func start(
    _ part: Part, _ settings: [String], _ file: ProgramFile, _ arguments: ProgramFile.Vector, _ spawn: Spawn
  ) throws(FileSystemError) -> pid_t {
    try withArguments(part, settings, file, arguments) { vector throws(FileSystemError) in
      try spawn.start(vector, file: path)
    }
  }

  /// Runs the part that this process's arguments name, and throws the exit status. Returns at once if they name none.
  static func runPart() throws {
    let all = CommandLine.unsafeArgv
    guard CommandLine.argc > 1, let part = all[1].flatMap({ Part(rawValue: String(cString: $0)) }) else { return }
    let settings = CommandLine.arguments.dropFirst(2).prefix(part.settings)
    let numbers = settings.compactMap { Int32($0) }
    guard Int(CommandLine.argc) > 3 + part.settings, let path = all[2 + part.settings],
      numbers.count >= min(3, part.settings)
    else { throw Failure.usage("There is no command “\(part.rawValue)”. See secret --help.") }
    _ = coffer_set_process_name("secret")
    // The programs that this process executes do not inherit the descriptors.
    for number in numbers { _ = fcntl(number, F_SETFD, FD_CLOEXEC) }
    let (file, arguments) = (ProgramFile(path: path), ProgramFile.Vector(all + 3 + part.settings))
    switch part {
    case .relay:
      throw ForegroundChild.end(as: try CommandRelay.start(file, arguments, launch: numbers[0]).run())
    case .session:
      let session = CommandSession(
        terminal: numbers[1], channel: SessionChannel(descriptor: try Descriptor(opened: numbers[2])),
        isForeground: settings.last == "foreground")
      throw ForegroundChild.end(as: try session.run(file, arguments, launch: numbers[0]))
    }
  }
}
