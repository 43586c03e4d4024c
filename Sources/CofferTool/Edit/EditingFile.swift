internal import CLinux
internal import Coffer
internal import CofferSystem
internal import Glibc

/// A value in a file for an editor, on a file system in memory and in a private directory.
struct EditingFile {
  let directory: String
  var path: String { directory + "/value" }
  /// The directory's lock, until this process ends. ``leftBehind()`` returns unlocked directories.
  private let lock: Descriptor?

  /// Creates the file. With `allowsDisk`, uses the directory for temporary files if there is no file system
  /// in memory; otherwise throws `.unsupported` in that case.
  init(_ value: borrowing SecretBytes, allowsDisk: Bool) throws(SecretError) {
    var created: String?
    for place in Self.memoryPlaces + (allowsDisk ? [Self.diskPlace] : []) where created == nil {
      created = Self.createDirectory(in: place)
    }
    guard let created else {
      throw SecretError(
        .unsupported,
        "There is no file system in memory at XDG_RUNTIME_DIR or /dev/shm, so an editor would write the value to a disk.",
        advice: "Use secret set, or accept the disk with --insecure-storage.")
    }
    (directory, lock) = (created, Self.tryLock(created))
    do throws(SecretError) {
      let path = path
      try value.withBytes { bytes throws(SecretError) in
        try PrivateFile.write(bytes, to: path, replacing: false)
      }
    } catch {
      wipe()
      throw error
    }
  }

  /// Overwrites and removes every file in the directory and below it, because an editor may have left copies.
  /// Prints a message if the directory cannot be removed. May be called again.
  func wipe() {
    // The value first: it must be gone even if the directory cannot be listed.
    Self.wipe(path)
    for name in Self.names(in: directory) { Self.wipe(directory + "/" + name) }
    if rmdir(directory) != 0 && errno != ENOENT {
      note(
        "secret: \(directory) could not be removed: \(FileSystemError(errno)). Remove it: it may contain the value."
      )
    }
  }

  /// Follows no link: a link is removed, and what it names is not.
  private static func wipe(_ path: String) {
    var kind = stat()
    if lstat(path, &kind) == 0, kind.st_mode & S_IFMT == S_IFDIR {
      for name in names(in: path) { wipe(path + "/" + name) }
      rmdir(path)
      return
    }
    let descriptor = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    if descriptor >= 0 {
      var status = stat()
      if fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG {
        var rest = Int(status.st_size)
        let zeros = [UInt8](repeating: 0, count: 65_536)
        while rest > 0 {
          let count = write(descriptor, zeros, min(rest, zeros.count))
          if count < 0 && errno == EINTR { continue }
          if count <= 0 { break }
          rest -= count
        }
      }
      close(descriptor)
    }
    unlink(path)
  }

  /// The names in a directory, or none if it cannot be read.
  private static func names(in directory: String) -> [String] {
    do throws(FileSystemError) { return try Path.names(inDirectory: directory) } catch { return [] }
  }

  /// The directories on a file system in memory, in order of preference.
  static var memoryPlaces: [String] {
    [Environment.value("XDG_RUNTIME_DIR"), "/dev/shm"].compactMap { $0 }.filter {
      FileSystemKind(of: $0) == .memory
    }
  }

  private static var diskPlace: String { Environment.value("TMPDIR") ?? "/tmp" }

  private static let prefix = "secret-edit-"

  private static func createDirectory(in place: String) -> String? {
    var template = Array("\(place)/\(prefix)XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { return nil }
    return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  private static func tryLock(_ directory: String) -> Descriptor? {
    do throws(FileSystemError) { return try PrivateDirectory.tryLock(directory) } catch { return nil }
  }

  /// The directories of this user that no running `edit` uses: `edit` was killed, or kept the edited text.
  static func leftBehind() -> [String] {
    var found: Set<String> = []
    for place in memoryPlaces + [diskPlace] {
      for name in names(in: place) where name.hasPrefix(prefix) {
        let path = "\(place)/\(name)"
        let owner = FileStatus(of: path, followingLink: false)?.owner
        if owner == geteuid(), tryLock(path) != nil { found.insert(path) }
      }
    }
    return found.sorted()
  }
}
