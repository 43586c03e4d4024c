internal import CLinux
internal import CofferSystem
internal import CofferLibc

/// The file of a command, found as execvp(3) finds it, before the command's environment is made: a `PATH` among the
/// command's variables does not decide which program is started.
struct ProgramFile {
  /// Ends with a NUL and contains a slash.
  let path: [CChar]

  /// A path that was found before.
  init(path: UnsafePointer<CChar>) { self.path = Self.copy(path) + [0] }

  /// Looks `name` up in this process's `PATH`, unless it contains a slash. Throws the `errno`: `ENOENT` if there is no
  /// such program, and `EACCES` if there is one that may not be executed.
  init(named name: UnsafePointer<CChar>) throws(FileSystemError) {
    let name = Self.copy(name)
    let (slash, colon) = (CChar(bitPattern: UInt8(ascii: "/")), CChar(bitPattern: UInt8(ascii: ":")))
    if name.contains(slash) {
      path = name + [0]
      return
    }
    if name.isEmpty { throw FileSystemError(ENOENT) }
    // The default is that of execvp(3).
    let directories = getenv("PATH").map { Self.copy($0) } ?? "/bin:/usr/bin".utf8.map { CChar(bitPattern: $0) }
    var failure = ENOENT
    for directory in directories.split(separator: colon, omittingEmptySubsequences: false) {
      let current = [CChar(bitPattern: UInt8(ascii: "."))]
      let candidate = (directory.isEmpty ? current : Array(directory)) + [slash] + name + [0]
      var status = stat()
      if stat(candidate, &status) != 0 {
        if errno == EACCES { failure = EACCES }
      } else if status.st_mode & S_IFMT != S_IFREG || faccessat(AT_FDCWD, candidate, X_OK, AT_EACCESS) != 0 {
        failure = EACCES
      } else {
        path = candidate
        return
      }
    }
    throw FileSystemError(failure)
  }

  private static func copy(_ text: UnsafePointer<CChar>) -> [CChar] {
    Array(UnsafeBufferPointer(start: text, count: strlen(text)))
  }

  typealias Vector = UnsafePointer<UnsafeMutablePointer<CChar>?>

  /// Replaces this process by the program. Returns the `errno`.
  func execute(_ arguments: Vector, environment: Vector) -> Int32 {
    execve(path, arguments, environment)
    if errno != ENOEXEC { return errno }
    return withShell(arguments) { shell in
      execve("/bin/sh", shell, environment)
      return errno
    }
  }

  /// Starts the program as a child with the variables of `environment`, on `terminal` if that is given.
  func start(
    _ spawn: Spawn, _ arguments: Vector, _ environment: borrowing CommandEnvironment,
    onTerminal terminal: Int32? = nil
  ) throws(FileSystemError) -> pid_t {
    try environment.withVector(onTerminal: terminal) { variables throws(FileSystemError) in
      var spawn = spawn
      spawn.environment = .vector(variables)
      do throws(FileSystemError) {
        return try spawn.start(arguments, file: path)
      } catch  where error.number == ENOEXEC {
        return try withShell(arguments) { shell throws(FileSystemError) in try spawn.start(shell) }
      }
    }
  }

  /// Calls `body` with the arguments of a shell that runs the file, as execvp(3) does for a script without a `#!` line.
  private func withShell<R, E: Error>(_ arguments: Vector, _ body: (Vector) throws(E) -> R) throws(E) -> R {
    let owned: [UnsafeMutablePointer<CChar>?] = [strdup("/bin/sh"), strdup(path)]
    defer { owned.forEach { free($0) } }
    return try body(owned + Array(arguments.strings.dropFirst()) + [nil])
  }
}

extension ProgramFile.Vector {
  /// The strings up to the `nil` at the end.
  var strings: [UnsafeMutablePointer<CChar>] {
    Array(
      sequence(state: self) { next in
        defer { next += 1 }
        return next.pointee
      })
  }
}
