import CofferCore
import CofferSystem
import CofferTestSupport
import Foundation
import Testing

/// The calls of the real file system have the effects that the vault relies on.
@Suite(.timeLimit(.minutes(30))) struct LinuxFileSystemTests {
  let directory: TemporaryDirectory
  let place: any Directory

  init() throws {
    directory = try TemporaryDirectory()
    place = try LinuxFileSystem().locate(directory.file("x"), followingLink: true).directory
  }

  private func link(_ name: String, to target: String) throws {
    try FileManager.default.createSymbolicLink(
      atPath: directory.file(name), withDestinationPath: target)
  }

  /// The open descriptors of this process that lead to `path`, with their status and descriptor flags.
  private func descriptors(of path: String) throws -> [(status: Int32, descriptor: Int32)] {
    try Path.names(inDirectory: "/proc/self/fd").compactMap { Int32($0) }.filter { number in
      (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(number)")) == path
    }.map { (fcntl($0, F_GETFL), fcntl($0, F_GETFD)) }
  }

  // MARK: Paths

  /// The kernel takes paths of less than 4,096 bytes.
  @Test func theStatusOfALongPathIsFound() throws {
    let name = String(repeating: "d", count: 250)
    var path = directory.path
    for _ in 0..<20 {
      path += "/" + name
      try PrivateDirectory.create(path)
    }
    let files = LinuxFileSystem()
    let file = try files.locate(path + "/file", followingLink: true).directory.create("file")
    #expect(try files.status(ofPath: path + "/file") == file.status())
    #expect(throws: FileSystemError(ENOENT)) { try files.status(ofPath: path + "/missing") }
    // The function that removes the directory of the test takes short paths only.
    let removal = try ChildProcess.run(
      ["rm", "-r", directory.path + "/" + name], environment: directory.environment())
    #expect(removal.status == 0, "\(removal.errorText)")
  }

  // MARK: Opening

  @Test(arguments: [true, false]) func aFileIsOpenedAsAskedAndClosedOnExecution(writable: Bool) throws {
    let path = try directory.write("text", to: "file")
    let file = try place.open("file", writable: writable)
    let flags = try descriptors(of: path)
    #expect(flags.count == 1 && flags.first?.descriptor == FD_CLOEXEC)
    #expect(flags.first.map { $0.status & O_ACCMODE } == (writable ? O_RDWR : O_RDONLY))
    #expect(flags.first.map { $0.status & O_NONBLOCK } == O_NONBLOCK)
    #expect(throws: FileSystemError(ENOENT)) { try place.open("missing", writable: writable) }
    withExtendedLifetime(file) {}
  }

  @Test(arguments: [true, false]) func aFIFODoesNotBlock(writable: Bool) throws {
    #expect(mkfifo(directory.file("fifo"), 0o600) == 0)
    let file = try place.open("fifo", writable: writable)
    #expect(try !file.status().isRegular)
  }

  @Test(arguments: [true, false]) func aLinkIsNotOpened(writable: Bool) throws {
    try directory.write("text", to: "file")
    try link("link", to: "file")
    #expect(throws: FileSystemError(ELOOP)) { try place.open("link", writable: writable) }
  }

  @Test func theDirectoryItselfIsClosedOnExecution() throws {
    let flags = try descriptors(of: directory.path)
    #expect(!flags.isEmpty && flags.allSatisfy { $0.descriptor == FD_CLOEXEC })
  }

  // MARK: Creating

  @Test(arguments: [mode_t(0), 0o022, 0o777]) func aNewFileHasMode600WhateverTheUmask(mask: mode_t) throws {
    let file = try withUmask(mask) { [place] in try place.create("new") }
    #expect(try directory.mode(of: "new") == 0o600)
    #expect(try file.status().mode == 0o600 && file.status().size == 0)
    let flags = try descriptors(of: directory.file("new"))
    #expect(flags.count == 1 && flags.first?.descriptor == FD_CLOEXEC)
    #expect(flags.first.map { $0.status & O_ACCMODE } == O_RDWR)
  }

  @Test func aTakenNameIsNotCreatedAgain() throws {
    try directory.write("text", to: "file")
    try link("dangling", to: "missing")
    for name in ["file", "dangling"] {
      #expect(throws: FileSystemError(EEXIST)) { try place.create(name) }
    }
    #expect(try directory.text(of: "file") == "text")
    #expect(FileStatus(of: directory.file("missing")) == nil)
  }

  // MARK: Status

  @Test func theStatusIsThatOfTheFileAndNotOfALinksTarget() throws {
    try directory.write("text", to: "file", mode: 0o4751)
    try link("link", to: "file")
    #expect(Glibc.link(directory.file("file"), directory.file("second")) == 0)
    let status = try place.status(of: "file")
    let expected = try FileManager.default.attributesOfItem(atPath: directory.file("file"))
    #expect(expected[.systemNumber] as? Int == Int(status.device))
    #expect(expected[.systemFileNumber] as? Int == Int(status.inode))
    #expect(status.size == 4 && status.isRegular && status.mode == 0o4751)
    #expect(status.links == 2 && status.owner == geteuid())
    let link = try place.status(of: "link")
    #expect(!link.isRegular && link.inode != status.inode && link.links == 1)
    #expect(try place.open("file", writable: false).status() == status)
    #expect(FileStatus(of: directory.file("link")) == status)
    #expect(FileStatus(of: directory.file("link"), followingLink: false) == link)
    let own = try place.status(of: ".")
    #expect(!own.isRegular && own.mode == 0o700)
    #expect(status.isSameFile(as: try place.status(of: "second")))
    #expect(!status.isSameFile(as: link))
    var other = status
    other.device += 1
    #expect(!status.isSameFile(as: other))
    if geteuid() == 0 {
      #expect(chown(directory.file("file"), 54_321, 0) == 0)
      #expect(try place.status(of: "file").owner == 54_321)
    }
  }

  // MARK: Names

  @Test func aRenameReplacesOnlyIfItMay() throws {
    try directory.write("new", to: "new")
    try directory.write("old", to: "old")
    #expect(throws: FileSystemError(EEXIST)) { try place.rename("new", to: "old", replacing: false) }
    #expect(try directory.text(of: "old") == "old" && directory.text(of: "new") == "new")
    try place.rename("new", to: "old", replacing: true)
    #expect(try directory.text(of: "old") == "new")
    try place.rename("old", to: "free", replacing: false)
    #expect(try place.names() == ["free"])
    #expect(throws: FileSystemError(ENOENT)) { try place.rename("old", to: "x", replacing: false) }
  }

  @Test func removalIsOfTheNameAlone() throws {
    try directory.write("text", to: "file")
    try link("link", to: "file")
    try place.remove("link")
    #expect(try place.names() == ["file"])
    #expect(throws: FileSystemError(ENOENT)) { try place.remove("link") }
    try directory.makeDirectory("directory")
    #expect(throws: FileSystemError(EISDIR)) { try place.remove("directory") }
  }

  @Test func theNamesAreReadFromTheBeginningEachTime() throws {
    #expect(try place.names().isEmpty)
    for name in [".hidden", "a", "b"] { try directory.write("", to: name) }
    for _ in 1...2 { #expect(try place.names().sorted() == [".hidden", "a", "b"]) }
  }

  // MARK: Contents and locks

  @Test func readingAndWritingAreAtAnOffset() throws {
    let file = try place.create("file")
    func read(_ count: Int, at offset: Int) throws -> [UInt8] {
      var bytes = [UInt8](repeating: 0xEE, count: count)
      let length = try bytes.withUnsafeMutableBytes { try file.read(into: $0, at: offset) }
      return Array(bytes[..<length])
    }
    #expect(try [UInt8](arrayLiteral: 1, 2, 3, 4).withUnsafeBytes { try file.write($0, at: 0) } == 4)
    #expect(try [UInt8](arrayLiteral: 9).withUnsafeBytes { try file.write($0, at: 2) } == 1)
    #expect(try read(10, at: 1) == [2, 9, 4])
    #expect(try read(10, at: 4) == [])
    try file.truncate(to: 3)
    #expect(try read(10, at: 0) == [1, 2, 9])
    try file.truncate(to: 5)
    #expect(try read(10, at: 0) == [1, 2, 9, 0, 0])
  }

  @Test func aLockIsOfTheOpenFileAndSharedOrExclusive() throws {
    try directory.write("", to: "file")
    let (first, second) = (try place.open("file", writable: true), try place.open("file", writable: true))
    #expect(try first.tryLock(exclusive: false) && second.tryLock(exclusive: false))
    #expect(try !first.tryLock(exclusive: true))
    try second.unlock()
    #expect(try first.tryLock(exclusive: true))
    #expect(try !second.tryLock(exclusive: true) && !second.tryLock(exclusive: false))
    try first.unlock()
    #expect(try second.tryLock(exclusive: true))
  }

  @Test func anInterruptedCallIsRepeatedAndAFailedOneIsNot() {
    var failures = [EINTR, EINTR, EIO, ENOSPC]
    #expect(throws: FileSystemError(EIO)) {
      try uninterrupted { () throws(FileSystemError) in throw FileSystemError(failures.removeFirst()) }
    }
  }

  // MARK: Watching

  @Test func aWatchReportsChangesOfTheNameAlone() async throws {
    try directory.write("", to: "file")
    let (mine, others) = (Count(), Count())
    let watches = [try place.watch("file") { mine.add() }, try place.watch("fil") { others.add() }]
    let changes: [() throws -> Void] = [
      { [place] in
        _ = try [UInt8](arrayLiteral: 1).withUnsafeBytes {
          try place.open("file", writable: true).write($0, at: 0)
        }
      },
      { [directory] in _ = chmod(directory.file("file"), 0o640) },
      { [place] in try place.rename("file", to: "away", replacing: true) },
      { [place] in try place.rename("away", to: "file", replacing: true) },
      { [place] in try place.remove("file") },
      { [place] in _ = try place.create("file") },
      { [place] in try place.remove("file") },
      { try link("file", to: "nowhere") },
    ]
    for (index, change) in changes.enumerated() {
      let before = mine.value
      try change()
      try await eventually("change \(index) was not reported") { mine.value > before }
      // The events of one change may arrive separately. All have arrived when the event of a later change arrives.
      let last = others.value
      try directory.write("\(index)", to: "fil")
      try await eventually("change \(index) of the other file was not reported") { others.value > last }
    }
    let before = mine.value
    // The prefix of a name is another name.
    let last = others.value
    try directory.write("x", to: "fil")
    try await eventually("the change was not reported") { others.value > last }
    #expect(mine.value == before)
    withExtendedLifetime(watches) {}
  }
}
