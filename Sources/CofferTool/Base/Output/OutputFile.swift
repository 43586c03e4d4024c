internal import CLinux
internal import Coffer
internal import CofferSystem
internal import CofferLibc

/// The destination of `--output`: a file that is replaced as a whole, or an open descriptor, a FIFO or a device.
enum OutputFile {
  /// How long the opening of a FIFO waits for a reader.
  private static let timeout = Duration.seconds(10)

  /// Writes `contents` to `path`. An open descriptor of this process (`-`, `/dev/stdout`, `/dev/fd/N`), a FIFO or a
  /// character device is written to at its current position, with ``Output/reveal(_:force:_:_:)``. Otherwise creates a
  /// file with mode 0600 or, with `replacing`, replaces it as a whole, and blocks signals so that none leaves an
  /// unfinished file behind.
  static func write(
    _ contents: SecretBytes, to path: String, replacing: Bool, force: Bool = false, _ subject: String,
    _ ending: String, within limit: (String) -> Bool = { _ in true }
  ) throws {
    try requireNoLinkOut(path, limit)
    if let stream = try stream(path) {
      defer { withExtendedLifetime(stream) {} }
      return try stream.output.reveal(contents, force: force, subject, ending)
    }
    let signals = try BlockedSignals(BlockedSignals.interruptions)
    defer { withExtendedLifetime(signals) {} }
    do throws(SecretError) { try PrivateFile.write(contents, to: path, replacing: replacing, within: limit) } catch {
      guard error.code == .alreadyExists else { throw error }
      throw Failure(.wouldOverwrite, "\(error.reason) Add --force to replace it.")
    }
  }

  /// A condition for the path to which links at `path` lead: it is below the directory of the repository or the project
  /// around `path`, or else below its own directory; and if `path` is below the working directory, so is it. A
  /// repository can contain a link that leads elsewhere.
  static func limit(of path: String) -> (String) -> Bool {
    /// The path without links of a directory, with a slash at its end.
    func resolved(_ directory: String) throws(FileSystemError) -> String {
      String(try LinuxFileSystem().locate("\(directory)/x", followingLink: false).path.dropLast())
    }
    do {
      let (working, own) = (try resolved("."), Path.parent(of: try Path.absolute(path)))
      var top = own
      while top != "/", FileStatus(of: top + "/.git") ?? FileStatus(of: top + "/.coffer.toml") == nil {
        top = Path.parent(of: top)
      }
      let isBelow = !path.split(separator: "/").contains("..") && (!path.hasPrefix("/") || path.hasPrefix(working))
      let limits = [try resolved(top == "/" ? own : top)] + (isBelow ? [working] : [])
      return { actual in limits.allSatisfy(actual.hasPrefix) }
    } catch { return { _ in true } }  // the write reports it
  }

  /// Throws a failure if `path` leads to a place outside of its ``limit(of:)``.
  static func requireNoLinkOut(_ path: String, _ isWithin: (String) -> Bool) throws {
    guard descriptor(path) == nil, let actual = try? LinuxFileSystem().locate(path, followingLink: true).path,
      !isWithin(actual)
    else { return }
    throw Failure(
      .wouldOverwrite, "\(path) leads through a link to \(actual), and nothing was written.",
      advice: "If that is meant, give its own path: --output \(actual.quotedForShell)")
  }

  /// The descriptor, FIFO or device at `path`, with the file that was opened for it, or `nil` for any other path.
  private static func stream(_ path: String) throws -> (output: Output, file: Descriptor?)? {
    if let number = descriptor(path) {
      // This program's own descriptors have FD_CLOEXEC.
      let flags = fcntl(number, F_GETFD)
      guard flags >= 0, flags & FD_CLOEXEC == 0 else {
        throw Failure(.inputOutput, "There is no open descriptor \(number), which \(path) names. Nothing was written.")
      }
      return (number == STDOUT_FILENO ? .standard : Output(descriptor: number, name: path), nil)
    }
    var status = stat()
    guard stat(path, &status) == 0, [S_IFIFO, S_IFCHR].contains(status.st_mode & S_IFMT) else { return nil }
    let deadline = ContinuousClock.now + timeout
    while true {
      do throws(FileSystemError) {
        let file = try Descriptor(opening: path, O_WRONLY | O_NONBLOCK | O_NOCTTY)
        _ = fcntl(file.number, F_SETFL, O_WRONLY)
        return (Output(descriptor: file.number, name: path), file)
      } catch {
        guard error.number == ENXIO, status.st_mode & S_IFMT == S_IFIFO else {
          throw SecretError.system(error, "The file \(path) cannot be opened")
        }
        if ContinuousClock.now > deadline {
          throw SecretError(.timedOut, "No program reads the FIFO \(path).", advice: "Start the reader first.")
        }
        usleep(10_000)
      }
    }
  }

  /// The number of the open descriptor to which `path` leads, also through links, or `nil`.
  static func descriptor(_ path: String) -> Int32? {
    if path == "-" { return STDOUT_FILENO }
    var path = path
    // The kernel follows at most 40 links.
    for _ in 1...40 {
      for directory in ["/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/", "/proc/\(getpid())/fd/"]
      where path.hasPrefix(directory) {
        return Int32(path.dropFirst(directory.utf8.count))
      }
      var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
      let count = readlink(path, &buffer, buffer.count)
      guard count > 0 else { return nil }
      let target = String(decoding: buffer[..<count], as: UTF8.self)
      path = target.hasPrefix("/") ? target : Path.parent(of: path) + "/" + target
    }
    return nil
  }
}

extension PrivateFile {
  static func write(
    _ contents: SecretBytes, to path: String, replacing: Bool, within limit: (String) -> Bool = { _ in true }
  ) throws(SecretError) {
    try contents.withBytes { bytes throws(SecretError) in
      try write(bytes, to: path, replacing: replacing, within: limit)
    }
  }
}
