internal import CLinux
package import CofferCore
internal import CofferLibc

/// Files that only one user can read: keys, passphrases, exports and Coffer's own configuration.
package enum PrivateFile {
  /// The UTF-8 text of a regular file that others may read but not write, or `nil` if there is no file. Throws as
  /// ``read(_:as:limit:isSecret:)`` does, and `.configuration` if it is not UTF-8.
  package static func text(of path: String, as subject: String, limit: Int) throws(SecretError) -> String? {
    guard let bytes = try read(path, as: subject, limit: limit, isSecret: false) else { return nil }
    do throws(SecretError) { return try bytes.string() } catch {
      throw unusable(subject, "is not UTF-8 text")
    }
  }

  /// The contents of a file, which holds a key or a passphrase if `isSecret`. Returns `nil` if there is no file.
  ///
  /// `subject` is the subject of the errors' sentences. Throws `.denied` if the file is exposed by the rule of
  /// ``FileExposure`` or cannot be opened, `.configuration` if it is not a regular file or has more than `limit` bytes,
  /// and `.io` if it cannot be read.
  package static func read(
    _ path: String, as subject: String, limit: Int, isSecret: Bool = true
  ) throws(SecretError) -> SecretBytes? {
    let (file, status): (Descriptor, FileStatus)
    do throws(FileSystemError) {
      // Non-blocking: opening a FIFO that has no writer must not wait.
      file = try Descriptor(opening: path, O_RDONLY | O_NONBLOCK | O_NOCTTY)
      status = try file.status()
    } catch {
      if error.number == ENOENT || error.number == ENOTDIR { return nil }
      throw .system(error, "\(subject) cannot be opened")
    }
    defer { withExtendedLifetime(file) {} }
    if !status.isRegular { throw unusable(subject, "is not a regular file") }
    if let exposure = FileExposure(of: status, isSecret: isSecret) {
      throw SecretError(.denied, "\(subject) \(exposure.predicate).", advice: exposure.advice)
    }
    if let bytes = try readToEnd(of: file.number, named: path, limit: limit, isRegular: true) { return bytes }
    throw unusable(subject, "has more than \(limit) bytes")
  }

  private static func unusable(_ subject: String, _ predicate: String) -> SecretError {
    SecretError(.configuration, "\(subject) \(predicate).", advice: "Correct the path, or move the file away.")
  }

  /// Writes `contents` to a file of mode 0600 at `path`, in one step. The file is on the disk when this returns.
  ///
  /// With `replacing`, a regular file at `path` is replaced, or the one that a symbolic link at `path` leads to; for
  /// anything else, throws `.io`. Without `replacing`, throws `.alreadyExists` if something is at `path`. Throws
  /// `.denied` or `.io` if the directory does not exist or cannot be written to, and `.denied` for a link of another
  /// user by the rule of ``PathWalk``.
  ///
  /// If it throws, nothing was written and no file is left behind, unless the error says that the contents are in
  /// place: then only the directory could not be written to the disk. For a process that is killed, see ``NewFile``.
  /// The path without links must fulfil `limit`; otherwise throws `.denied`.
  package static func write(
    _ contents: Span<UInt8>, to path: String, replacing: Bool, within limit: (String) -> Bool = { _ in true }
  ) throws(SecretError) {
    let unconfirmed: FileSystemError?
    var isWithin = true
    do throws(FileSystemError) {
      let place = try PathWalk.place(of: path, followingLink: true)
      isWithin = limit(place.path)
      guard isWithin else { throw FileSystemError(EXDEV) }
      let directory = LinuxDirectory(place.directory)
      if replacing, try !isReplaceable(place.name, in: directory) { throw FileSystemError(EISDIR) }
      unconfirmed = try put(contents, at: place.name, in: directory, replacing: replacing)
    } catch {
      switch error.number {
      case EEXIST:
        throw SecretError(.alreadyExists, "The file \(path) already exists.", advice: "Choose another path.")
      case _ where !isWithin:
        throw SecretError(
          .denied, "\(path) leads through a link to another directory, so nothing was written.",
          advice: "Name another file.")
      case EISDIR:
        throw SecretError(
          .io, "\(path) is not a regular file, so nothing was written to it.", advice: "Name another file.")
      case ENOENT, ENOTDIR:
        throw SecretError(.io, "The directory of the file \(path) does not exist.", advice: "Create it first.")
      case EBUSY:
        throw SecretError(
          .denied, "The file \(path) is itself a mount point, so no new file can replace it.",
          advice: "Mount its directory instead, or name another file.")
      default: throw .system(error, "The file \(path) cannot be written")
      }
    }
    if let unconfirmed {
      throw SecretError(
        .io, "The file \(path) was written, but may be lost if the power fails now: \(unconfirmed).",
        advice: "Check the disk, and write the file again.")
    }
  }

  /// Whether `name` is free, a regular file, or a link that leads nowhere.
  private static func isReplaceable(_ name: String, in directory: LinuxDirectory) throws(FileSystemError) -> Bool {
    do throws(FileSystemError) {
      if try directory.status(of: name).isRegular { return true }
      // A link in /proc may contain a path that leads nowhere, although the kernel can follow the link.
      _ = try directory.status(of: name, followingLink: true)
      return false
    } catch  where error.number == ENOENT {
      return true
    }
  }

  /// Returns the error of the last barrier: the file is then in place, but its name may not be on the disk.
  private static func put(
    _ contents: Span<UInt8>, at name: String, in directory: LinuxDirectory, replacing: Bool
  ) throws(FileSystemError) -> FileSystemError? {
    NewFile.removeAbandoned(for: name, in: directory, user: geteuid())
    do throws(FileSystemError) {
      try putUnnamed(contents, at: name, in: directory, replacing: replacing)
    } catch {
      // A second attempt would give the contents a name.
      if error.number == EEXIST { throw error }
      // Not every file system supports unnamed files, and older kernels need /proc to name one.
      let file = try NewFile(for: name, in: directory, needsLock: false)
      try finish(file, replacing: replacing) { () throws(FileSystemError) in
        try file.file.writeAll(contents, at: 0)
      }
    }
    do throws(FileSystemError) { try uninterrupted(directory.synchronize) } catch {
      // A new file can be removed. A replaced file cannot be restored.
      if replacing { return error }
      do throws(FileSystemError) { try directory.remove(name) } catch _ { return error }
      throw error
    }
    return nil
  }

  /// Writes a file that has no name until it is complete, so that nothing stays if the process is killed. To replace a
  /// file, the new one needs a temporary name between two system calls.
  private static func putUnnamed(
    _ contents: Span<UInt8>, at name: String, in directory: LinuxDirectory, replacing: Bool
  ) throws(FileSystemError) {
    let flags = O_RDWR | coffer_O_TMPFILE
    let file = try LinuxFile(Descriptor(opening: ".", in: directory.descriptor, flags, mode: 0o600))
    try file.setMode(0o600)
    // Nobody else can have the lock. An error is ignored, because some file systems have no locks.
    do throws(FileSystemError) {
      _ = try uninterrupted { () throws(FileSystemError) in try file.tryLock(exclusive: true) }
    } catch {}
    try file.writeAll(contents, at: 0)
    try uninterrupted(file.synchronize)
    do throws(FileSystemError) { return try directory.link(file, to: name) } catch {
      guard replacing, error.number == EEXIST else { throw error }
    }
    try finish(NewFile(file, for: name, in: directory), replacing: true)
  }

  private static func finish(
    _ file: NewFile, replacing: Bool, _ fill: () throws(FileSystemError) -> Void = {}
  ) throws(FileSystemError) {
    do throws(FileSystemError) {
      try fill()
      try file.takeName(replacing: replacing)
    } catch {
      file.abandon()
      throw error
    }
  }
}
