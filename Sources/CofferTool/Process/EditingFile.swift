internal import Coffer
internal import Glibc

/// A value in a file for an editor: in memory-backed storage, in a directory of its own, for its owner alone.
struct EditingFile {
  let directory: String
  var path: String { directory + "/value" }

  /// Makes it. `isInsecureAllowed`: on a disk, where there is no memory-backed storage. Throws `.unsupported`
  /// where there is none and that is not allowed.
  init(_ value: borrowing SecretBytes, isInsecureAllowed: Bool) throws(SecretError) {
    var made: String?
    for place in Self.memoryPlaces where made == nil { made = Self.makeDirectory(in: place) }
    if made == nil && isInsecureAllowed { made = Self.makeDirectory(in: Self.diskPlace) }
    guard let made else {
      throw SecretError(
        .unsupported,
        "There is no storage in memory here, neither in XDG_RUNTIME_DIR nor in /dev/shm, so an editor would write the value to a disk.",
        advice: "Use secret set, or accept that with --insecure-storage."
      )
    }
    directory = made
    do throws(SecretError) {
      let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
      if descriptor < 0 { throw Self.failure(path, errno) }
      defer { close(descriptor) }
      try value.withBytes { bytes throws(SecretError) in
        try writeAll(bytes, to: descriptor, named: path)
      }
    } catch {
      wipe()
      throw error
    }
  }

  /// What is in the file now.
  func value() throws -> SecretBytes { try ValueInput.read(file: path) }

  /// Overwrites and removes everything in the directory: an editor may have left copies. Says so where it
  /// cannot.
  func wipe() {
    for name in Directory.entries(directory) ?? [] { Self.wipe(directory + "/" + name) }
    if rmdir(directory) != 0 && errno != ENOENT {
      note(
        "secret: \(directory) could not be removed: \(systemMessage(errno)). Remove it: values may be in it.")
    }
  }

  private static func wipe(_ path: String) {
    let descriptor = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    if descriptor >= 0 {
      var status = stat()
      if fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG {
        var rest = Int(status.st_size)
        let zeros = [UInt8](repeating: 0, count: 65_536)
        while rest > 0 {
          let count = write(descriptor, zeros, min(rest, zeros.count))
          if count <= 0 { break }
          rest -= count
        }
      }
      close(descriptor)
    }
    unlink(path)
  }

  /// Where there is memory-backed storage, the best first.
  static var memoryPlaces: [String] {
    [Environment.value("XDG_RUNTIME_DIR"), "/dev/shm"].compactMap { $0 }.filter {
      FileSystemKind(of: $0) == .memory
    }
  }

  private static var diskPlace: String { Environment.value("TMPDIR") ?? "/tmp" }

  private static let prefix = "secret-edit-"

  /// The directory, which is locked for as long as this process lives: one that is not was left behind.
  private static func makeDirectory(in place: String) -> String? {
    var template = Array("\(place)/\(prefix)XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { return nil }
    let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    _ = lock(path)
    return path
  }

  /// A descriptor that holds the lock of a directory, or `nil` where somebody has it.
  private static func lock(_ path: String) -> Int32? {
    let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
    if descriptor < 0 { return nil }
    if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return descriptor }
    close(descriptor)
    return nil
  }

  /// Directories of this user's that no running `edit` works on: it was killed, or left its text for the user.
  static func leftBehind() -> [String] {
    var found: [String] = []
    for place in memoryPlaces + [diskPlace] {
      for name in Directory.entries(place) ?? [] where name.hasPrefix(prefix) {
        let path = "\(place)/\(name)"
        var status = stat()
        guard lstat(path, &status) == 0, status.st_uid == geteuid(), let descriptor = lock(path) else {
          continue
        }
        close(descriptor)
        found.append(path)
      }
    }
    return Set(found).sorted()
  }

  private static func failure(_ path: String, _ code: Int32) -> SecretError {
    SecretError(.io, "The file \(path) cannot be made: \(systemMessage(code)).")
  }
}
