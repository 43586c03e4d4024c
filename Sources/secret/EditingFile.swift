internal import Coffer
internal import Glibc

/// A value in a file for an editor: in memory-backed storage, in a directory of its own, for its owner alone.
struct EditingFile {
  let directory: String
  var path: String { directory + "/value" }

  /// Makes it. `isInsecureAllowed`: on a disk, where there is no memory-backed storage. Throws `.unsupported`
  /// where there is none and that is not allowed.
  init(_ value: borrowing SecretBytes, isInsecureAllowed: Bool) throws(SecretError) {
    let places = [Environment.value("XDG_RUNTIME_DIR"), "/dev/shm"].compactMap { $0 }
    var made: String?
    for place in places where FileSystemKind(of: place) == .memory {
      made = Self.makeDirectory(in: place)
      if made != nil { break }
    }
    if made == nil && isInsecureAllowed {
      made = Self.makeDirectory(in: Environment.value("TMPDIR") ?? "/tmp")
    }
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

  private static func makeDirectory(in place: String) -> String? {
    var template = Array("\(place)/secret-edit-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { return nil }
    return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  private static func failure(_ path: String, _ code: Int32) -> SecretError {
    SecretError(.io, "The file \(path) cannot be made: \(systemMessage(code)).")
  }
}
