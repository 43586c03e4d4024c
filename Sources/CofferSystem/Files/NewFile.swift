internal import CofferLibc

/// A file of mode 0600 that gets its name in a directory when its contents are complete.
///
/// Before that, it has a temporary name in the same directory, or no name. A temporary name is hidden and ends in
/// `.unfinished`. The file stays locked until its last reference is released. The lock tells other processes that the
/// file is not abandoned, and that they may not change it yet. Not thread-safe.
package struct NewFile {
  package let file: any File
  private let directory: any Directory
  private let name: String
  private let temporaryName: String

  private static let suffix = ".unfinished"
  private static let digits = 16
  /// The most bytes of a name that its temporary name contains. A file name has at most 255 bytes.
  private static let longestBeginning = 200
  private static let attempts = 10

  /// Creates the file under a temporary name, and locks it. Without `needsLock`, an error of the lock is ignored,
  /// because some file systems have no locks. `random` makes the name unpredictable.
  package init(
    for name: String, in directory: any Directory, needsLock: Bool = true,
    random: () -> UInt64 = { .random(in: .min ... .max) }
  ) throws(FileSystemError) {
    for _ in 1...Self.attempts {
      let temporaryName = Self.temporaryName(of: name, random())
      let file = try uninterrupted { () throws(FileSystemError) in try directory.create(temporaryName) }
      do throws(FileSystemError) {
        // Another process may take the file for an abandoned one before it is locked.
        var isLocked = !needsLock
        do throws(FileSystemError) {
          isLocked = try uninterrupted { () throws(FileSystemError) in try file.tryLock(exclusive: true) }
        } catch { if needsLock { throw error } }
        if isLocked, try uninterrupted(file.status).links == 1 {
          (self.file, self.directory, self.name) = (file, directory, name)
          self.temporaryName = temporaryName
          return
        }
        Self.remove(temporaryName, in: directory)
      } catch {
        Self.remove(temporaryName, in: directory)
        throw error
      }
    }
    throw FileSystemError(EBUSY)
  }

  /// Gives a temporary name to a file that has none, and that the caller has locked.
  init(_ file: LinuxFile, for name: String, in directory: LinuxDirectory) throws(FileSystemError) {
    (self.file, self.directory, self.name) = (file, directory, name)
    temporaryName = Self.temporaryName(of: name, .random(in: .min ... .max))
    try directory.link(file, to: temporaryName)
  }

  /// Waits until the contents are on the disk, and gives the file its name. The name need not be on the disk yet.
  ///
  /// Throws `EEXIST` without `replacing` if the name is taken. If it throws, the name is as it was before, and the
  /// caller must call ``abandon()``.
  package func takeName(replacing: Bool) throws(FileSystemError) {
    defer { withExtendedLifetime(file) {} }  // the lock
    try uninterrupted(file.synchronize)
    try uninterrupted { () throws(FileSystemError) in
      try directory.rename(temporaryName, to: name, replacing: replacing)
    }
  }

  /// Removes the file after a failure. If that fails, ``removeAbandoned(for:in:user:)`` of a later writer removes it.
  package func abandon() { Self.remove(temporaryName, in: directory) }

  private static func remove(_ name: String, in directory: any Directory) {
    do throws(FileSystemError) { try directory.remove(name) } catch {}
  }

  // MARK: Temporary names

  private static func prefix(of name: String) -> String {
    var beginning = name
    while beginning.utf8.count > longestBeginning { beginning.unicodeScalars.removeLast() }
    return ".\(beginning)."
  }

  private static func temporaryName(of name: String, _ number: UInt64) -> String {
    let text = String(number, radix: 16)
    return prefix(of: name) + String(repeating: "0", count: digits - text.utf8.count) + text + suffix
  }

  /// Whether `other` is a temporary name for `name`.
  package static func isTemporaryName(_ other: String, of name: String) -> Bool {
    let prefix = prefix(of: name)
    guard other.hasPrefix(prefix), other.hasSuffix(suffix) else { return false }
    let number = other.dropFirst(prefix.count).dropLast(suffix.count)
    return UInt64(number, radix: 16).map { temporaryName(of: name, $0) == other } ?? false
  }

  /// Removes the files for `name` that interrupted processes of `user` left. What cannot be removed stays.
  package static func removeAbandoned(for name: String, in directory: any Directory, user: UInt32) {
    var names: [String] = []
    do throws(FileSystemError) { names = try uninterrupted(directory.names) } catch {}
    for other in names where isTemporaryName(other, of: name) {
      do throws(FileSystemError) {
        let isAbandoned = try uninterrupted { () throws(FileSystemError) -> Bool in
          let status = try directory.status(of: other)
          guard status.isRegular, status.owner == user else { return false }
          // If a rename is a link and a removal, an interruption leaves both names. The file may be locked then.
          if status.links > 1, try directory.status(of: name).isSameFile(as: status) { return true }
          return try directory.open(other, writable: true).tryLock(exclusive: true)
        }
        if isAbandoned { try directory.remove(other) }
      } catch {}
    }
  }
}
