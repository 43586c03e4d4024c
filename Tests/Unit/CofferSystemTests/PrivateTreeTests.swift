import CofferTestSupport
import Foundation
import Testing

@testable import CofferSystem

/// Directories that are overwritten and removed with what is in them.
@Suite struct PrivateTreeTests {
  private let directory: TemporaryDirectory
  init() throws { directory = try TemporaryDirectory() }

  private func tree() throws -> PrivateTree { try PrivateTree(in: directory.path, prefix: "tree-") }

  private func data(_ name: String) throws -> Data {
    try Data(contentsOf: URL(filePath: directory.file(name)))
  }

  @Test func aPlaceWhoseFilesOthersCanExchangeIsRefused() throws {
    for mode: mode_t in [0o777, 0o770, 0o702] {
      #expect(chmod(directory.path, mode) == 0)
      #expect(throws: FileSystemError(EACCES)) { try tree() }
    }
    for mode: mode_t in [0o1777, 0o755, 0o700] {
      #expect(chmod(directory.path, mode) == 0)
      try tree().wipe(first: ["value"])
    }
    #expect(throws: FileSystemError(ENOENT)) { try PrivateTree(in: directory.file("missing"), prefix: "") }
  }

  @Test(.enabled(if: geteuid() == 0, "only root can give a directory to another user"))
  func aPlaceOfAnotherUserIsRefused() throws {
    #expect(chown(directory.path, 54_321, 54_321) == 0)
    #expect(throws: FileSystemError(EACCES)) { try tree() }
  }

  /// The files of the tree are overwritten, and the files that took its place are not.
  @Test(arguments: [true, false]) func whatTakesTheNameStays(_ isLink: Bool) throws {
    let tree = try tree()
    let name = (tree.path as NSString).lastPathComponent
    try directory.write("secret", to: "\(name)/below/copy")
    try directory.write("secret", to: "\(name)/value")
    try directory.write("of another", to: "other/value")
    #expect(link(directory.file("\(name)/below/copy"), directory.file("kept")) == 0)
    #expect(rename(tree.path, directory.file("moved")) == 0)
    if isLink {
      #expect(symlink("other", tree.path) == 0)
    } else {
      #expect(rename(directory.file("other"), tree.path) == 0)
    }
    #expect(throws: FileSystemError(ESTALE)) { try tree.wipe(first: ["value"]) }
    #expect(try directory.text(of: "\(name)/value") == "of another")
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.file("moved")).isEmpty)
    #expect(try data("kept") == Data(count: 6))
  }

  @Test func aTreeIsLockedAndRemovedOnce() throws {
    let tree = try tree()
    #expect(try PrivateDirectory.tryLock(tree.path) == nil)
    try tree.wipe(first: ["value"])
    #expect(FileStatus(of: tree.path) == nil)
    try tree.wipe(first: ["value"])
  }

  /// A deep tree needs neither stack nor a descriptor for each of its levels, and a name need not be UTF-8.
  @Test func aDeepTreeWithNamesOfAnyBytesIsRemoved() throws {
    let tree = try tree()
    var level = open(tree.path, O_RDONLY | O_DIRECTORY)
    for _ in 0..<20_000 {
      #expect(mkdirat(level, "d", 0o700) == 0)
      let below = openat(level, "d", O_RDONLY | O_DIRECTORY)
      close(level)
      level = below
    }
    let name: [CChar] = [0x61, -1, 0]
    let file = openat(level, name, O_WRONLY | O_CREAT, 0o600)
    #expect(write(file, "secret", 6) == 6)
    #expect(linkat(level, name, AT_FDCWD, directory.file("kept"), 0) == 0)
    #expect(fchmod(level, 0o500) == 0)
    close(file)
    close(level)
    try tree.wipe(first: [])
    #expect(FileStatus(of: tree.path) == nil)
    #expect(try data("kept") == Data(count: 6))
  }
}
