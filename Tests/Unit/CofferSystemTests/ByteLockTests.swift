import CofferSystem
import CofferTestSupport
import Foundation
import Testing

@Suite struct ByteLockTests {
  let directory: TemporaryDirectory
  let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = directory.file("locks")
  }

  @Test func eachByteHasOneHolderAtATime() async throws {
    var first = try ByteLock.tryLock(path, offset: 7)
    #expect(try first != nil && ByteLock.tryLock(path, offset: 7) == nil)
    let others = try [6, 8, 0, Int64.max - 1].map { try ByteLock.tryLock(path, offset: $0) }
    #expect(others.allSatisfy { $0 != nil })
    first = nil
    // A process that another test is just starting holds a copy of the lock until it executes its program.
    try await eventually("the byte stayed locked") { try ByteLock.tryLock(path, offset: 7) != nil }
    withExtendedLifetime(others) {}
  }

  @Test func theFileIsPrivateEmptyAndClosedOnExecution() throws {
    let lock = try withUmask(0) { [path] in try ByteLock.tryLock(path, offset: 1) }
    #expect(try directory.mode(of: "locks") == 0o600 && directory.text(of: "locks") == "")
    let number = try #require(lock?.number)
    #expect(fcntl(number, F_GETFD) == FD_CLOEXEC && fcntl(number, F_GETFL) & O_ACCMODE == O_RDWR)
  }

  @Test func aLinkIsNotFollowed() throws {
    for target in ["file", "missing"] {
      try directory.write("text", to: "file")
      try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: target)
      #expect(throws: FileSystemError(ELOOP)) { try ByteLock.tryLock(path, offset: 1) }
      #expect(FileStatus(of: directory.file("missing")) == nil)
      try FileManager.default.removeItem(atPath: path)
    }
    #expect(throws: FileSystemError(ENOENT)) {
      try ByteLock.tryLock(directory.file("missing/locks"), offset: 1)
    }
  }

  @Test func aFileThatWasRemovedIsNotTheOneToLock() throws {
    let lock = try ByteLock.tryLock(path, offset: 1)
    try FileManager.default.removeItem(atPath: path)
    let other = try ByteLock.tryLock(path, offset: 1)
    #expect(try other != nil && ByteLock.tryLock(path, offset: 1) == nil)
    withExtendedLifetime((lock, other)) {}
  }
}
