internal import Glibc

/// The contents of a file before they have the file's name.
///
/// They are in a file without a name, which is gone if the process is killed. To replace a file they need a name beside
/// it for the moment between two system calls. On a file system without such files they have that name from the start.
/// It is hidden, ends in `.unfinished`, and is removed by the next process that writes the same file: the file is locked
/// while it is in use.
struct NewFile {
  private let directory: LinuxDirectory
  private let name: String
  private let file: LinuxFile
  /// The name that the contents have now.
  private var temporaryName: String?

  private static let suffix = ".unfinished"
  private static let digits = 16
  /// The longest beginning of a name in the temporary one, in bytes: a name has at most 255.
  private static let longestBeginning = 200
  private static let attempts = 10

  private static func prefix(of name: String) -> String {
    var beginning = name
    while beginning.utf8.count > longestBeginning { beginning.unicodeScalars.removeLast() }
    return ".\(beginning)."
  }

  private static func newTemporaryName(of name: String) -> String {
    let number = (1...digits).compactMap { _ in "0123456789abcdef".randomElement() }
    return prefix(of: name) + String(number) + suffix
  }

  /// Puts a file of mode 0600 with `contents` at `name`. Its contents are on the disk then, and its name may not be.
  ///
  /// Throws `EEXIST` if the name is taken, unless it may be `replacing` the file there. If it throws, `name` is as it
  /// was before.
  static func put(
    _ contents: Span<UInt8>, at name: String, in directory: LinuxDirectory, isNamed: Bool, replacing: Bool
  ) throws(SystemCallError) {
    var file = try NewFile(for: name, in: directory, isNamed: isNamed)
    do throws(SystemCallError) {
      try file.fill(contents)
      try file.takeName(replacing: replacing)
    } catch {
      file.abandon()
      throw error
    }
  }

  private init(for name: String, in directory: LinuxDirectory, isNamed: Bool) throws(SystemCallError) {
    (self.directory, self.name) = (directory, name)
    if isNamed {
      (file, temporaryName) = try Self.createNamed(for: name, in: directory)
      return
    }
    file = try directory.createUnnamed()
    // Nobody else can have the lock. It is for the moment in which the file has a temporary name.
    _ = try uninterrupted { () throws(SystemCallError) in try file.tryLock(exclusive: true) }
  }

  private static func createNamed(
    for name: String, in directory: LinuxDirectory
  ) throws(SystemCallError) -> (LinuxFile, String) {
    for _ in 1...attempts {
      let temporaryName = newTemporaryName(of: name)
      let file = try directory.createFile(temporaryName)
      // Another process may take the file for an abandoned one before it is locked.
      let isLocked = try uninterrupted { () throws(SystemCallError) in try file.tryLock(exclusive: true) }
      if isLocked, try file.status().links == 1 { return (file, temporaryName) }
    }
    throw SystemCallError(EBUSY)
  }

  /// Writes all of `bytes`, and returns when they are on the disk.
  private func fill(_ bytes: Span<UInt8>) throws(SystemCallError) {
    try bytes.withUnsafeBytes { bytes throws(SystemCallError) in
      var written = 0
      while written < bytes.count {
        let rest = UnsafeRawBufferPointer(rebasing: bytes[written...])
        let count = try uninterrupted { () throws(SystemCallError) in try file.write(rest, at: written) }
        if count == 0 { throw SystemCallError(EIO) }
        written += count
      }
    }
    try uninterrupted { () throws(SystemCallError) in try file.synchronize() }
  }

  /// Gives the file its name.
  private mutating func takeName(replacing: Bool) throws(SystemCallError) {
    if temporaryName == nil {
      do throws(SystemCallError) { return try directory.link(file, to: name) } catch {
        guard replacing, error.number == EEXIST else { throw error }
      }
      let unfinished = Self.newTemporaryName(of: name)
      try directory.link(file, to: unfinished)
      temporaryName = unfinished
    }
    guard let unfinished = temporaryName else { return }
    try directory.rename(unfinished, to: name, replacing: replacing)
    temporaryName = nil
  }

  /// Removes what has a temporary name, after a failure.
  private mutating func abandon() {
    guard let unfinished = temporaryName else { return }
    // If that fails, the next process that writes the file removes it.
    do throws(SystemCallError) { try directory.remove(unfinished) } catch {}
    temporaryName = nil
  }

  /// Removes what killed processes of this user left of files for `name`. What cannot be removed stays.
  static func removeAbandoned(for name: String, in directory: LinuxDirectory) {
    var names: [String] = []
    do throws(SystemCallError) { names = try directory.names() } catch {}
    let prefix = prefix(of: name)
    for name in names where name.hasPrefix(prefix) && name.hasSuffix(suffix) {
      let number = name.utf8.dropFirst(prefix.utf8.count).dropLast(suffix.utf8.count)
      guard number.count == digits, number.allSatisfy({ (48...57).contains($0) || (97...102).contains($0) })
      else { continue }
      do throws(SystemCallError) { try removeIfAbandoned(name, in: directory) } catch {}
    }
  }

  private static func removeIfAbandoned(
    _ name: String, in directory: LinuxDirectory
  ) throws(SystemCallError) {
    let file = try directory.open(name, writable: true)
    let status = try file.status()
    guard status.isRegular, status.owner == geteuid(), try file.tryLock(exclusive: true) else { return }
    try directory.remove(name)
  }
}
