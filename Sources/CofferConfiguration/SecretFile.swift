internal import CofferCore
internal import Glibc

/// Reads what holds a key or a passphrase, straight into guarded memory.
enum SecretFile {
  /// The most that is read, in bytes: a key is 62, and a passphrase is something a person has.
  static let maximumSize = 4096

  /// The bytes of the file at `path`, which `name` gave: a variable, or the file it was recorded in.
  ///
  /// Throws `.configuration` where there is no file, or one that is too large or no file to keep a key in;
  /// and `.denied` where it is this user's own and others can read it. A file of root's is taken as it is: a
  /// container's runtime mounts secrets so.
  static func read(_ path: String, named name: String) throws(SecretError) -> SecretBytes {
    if path.isEmpty {
      throw SecretError(.configuration, "\(name) is set, and empty.", advice: "Give it a path, or unset it.")
    }
    // Non-blocking, so that opening a FIFO without a writer does not wait.
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    if descriptor < 0 {
      let code = errno
      if code == ENOENT || code == ENOTDIR {
        throw SecretError(
          .configuration,
          "\(name) names the file \(path), and it is not there.",
          advice: "Put the file there, or correct \(name)."
        )
      }
      throw FileAccess.error(code, "\(name): opening", path)
    }
    defer { close(descriptor) }
    var status = stat()
    if fstat(descriptor, &status) != 0 { throw FileAccess.error(errno, "\(name): looking at", path) }
    if status.st_mode & S_IFMT != S_IFREG {
      throw SecretError(
        .configuration,
        "\(name) names \(path), which is not a regular file.",
        advice: "Correct \(name)."
      )
    }
    if isExposed(mode: status.st_mode, owner: status.st_uid, user: geteuid()) {
      throw SecretError(
        .denied,
        "\(name) names \(path), which others than its owner have access to.",
        advice: "Run `chmod 600` on it, and consider the key known to them."
      )
    }
    return try read(descriptor, named: "\(name) (\(path))", until: nil)
  }

  /// Whether a file is the user's own, and open to others. One of root's is not the user's to close.
  static func isExposed(mode: mode_t, owner: uid_t, user: uid_t) -> Bool {
    owner == user && owner != 0 && mode & 0o077 != 0
  }

  /// Reads the descriptor to its end, waiting until `deadline` at most. Throws `.configuration` where there
  /// are more than ``maximumSize`` bytes.
  static func read(
    _ descriptor: Int32,
    named name: String,
    until deadline: ContinuousClock.Instant?
  ) throws(SecretError) -> SecretBytes {
    var length = 0
    let buffer = try SecretBytes(count: maximumSize + 1) { (buffer) throws(SecretError) in
      while length < buffer.count {
        if let deadline { try wait(for: descriptor, named: name, until: deadline) }
        let count = Glibc.read(descriptor, buffer.baseAddress.map { $0 + length }, buffer.count - length)
        if count == 0 { break }
        if count < 0 {
          let code = errno
          if code == EINTR || code == EAGAIN && deadline != nil { continue }
          throw SecretError(
            .io,
            "Reading \(name) failed: \(String(cString: strerror(code))).",
            advice: "Check what it names."
          )
        }
        length += count
      }
    }
    if length > maximumSize {
      throw SecretError(
        .configuration,
        "\(name) has more than \(maximumSize) bytes: it is no key or passphrase.",
        advice: "Check what it names."
      )
    }
    return buffer.prefix(length)
  }

  /// Waits until the descriptor has something to read, or has ended.
  private static func wait(
    for descriptor: Int32,
    named name: String,
    until deadline: ContinuousClock.Instant
  ) throws(SecretError) {
    while true {
      let (seconds, attoseconds) = (deadline - .now).components
      let milliseconds = min(max(0, seconds * 1000 + attoseconds / 1_000_000_000_000_000), 3_600_000)
      var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      let count = poll(&request, 1, Int32(milliseconds))
      if count > 0 { return }
      let code = errno
      if count < 0 && code != EINTR {
        throw SecretError(
          .io,
          "Waiting for \(name) failed: \(String(cString: strerror(code))).",
          advice: "Check what it names."
        )
      }
      if ContinuousClock.now >= deadline {
        throw SecretError(
          .timedOut,
          "\(name) did not give all of the passphrase in time.",
          advice: "Check that its other end writes it and closes."
        )
      }
    }
  }
}

/// The descriptor that `COFFER_PASSPHRASE_FD` names. It can be read once, so what it gave is kept.
final class PassphraseDescriptor: Sendable {
  private let number: String
  private let lock = DeadlineLock()
  private nonisolated(unsafe) var outcome: Result<SharedSecret, SecretError>?  // only under the lock

  init(_ number: String) { self.number = number }

  /// All that could be read from it.
  func text(timeout: Double) throws(SecretError) -> SecretBytes {
    try lock.withLock(seconds: timeout + 10) { () throws(SecretError) in
      if outcome == nil {
        // A failure is kept as well: after half a passphrase, the other half is not one.
        do throws(SecretError) {
          outcome = .success(SharedSecret(try read(timeout: timeout)))
        } catch {
          outcome = .failure(error)
        }
      }
      guard let outcome else { fatalError("it has just been set") }
      return try outcome.get().bytes.copy()
    }
  }

  private func read(timeout: Double) throws(SecretError) -> SecretBytes {
    guard let descriptor = Int32(number), descriptor >= 0, fcntl(descriptor, F_GETFD) >= 0 else {
      throw SecretError(
        .configuration,
        "COFFER_PASSPHRASE_FD is not the number of a descriptor that is open.",
        advice: "Open it in the shell, as in `COFFER_PASSPHRASE_FD=3 secret get NAME 3<FILE`."
      )
    }
    // A file behind it could be read from the start again by the programs that this one runs.
    if descriptor > 2 { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
    return try SecretFile.read(
      descriptor,
      named: "COFFER_PASSPHRASE_FD",
      until: .now + .milliseconds(Int64(timeout * 1000))
    )
  }
}
