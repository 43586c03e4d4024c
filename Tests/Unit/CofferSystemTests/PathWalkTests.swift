import CofferCore
import CofferSystem
import CofferTestSupport
import Foundation
import Testing

/// Paths are resolved as the kernel resolves them, except for links of other users in shared directories. A location
/// that was resolved stays the same.
@Suite struct PathWalkTests {
  let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func located(_ path: String, followingLink: Bool = true) throws(FileSystemError) -> Location {
    try LinuxFileSystem().locate(path, followingLink: followingLink)
  }

  private func path(_ name: String, followingLink: Bool = true) throws(FileSystemError) -> String {
    try located(directory.file(name), followingLink: followingLink).path
  }

  private func link(_ name: String, to target: String) throws {
    try FileManager.default.createSymbolicLink(
      atPath: directory.file(name), withDestinationPath: target)
  }

  private func failure(_ name: String, followingLink: Bool = true) -> FileSystemError? {
    do throws(FileSystemError) { _ = try path(name, followingLink: followingLink) } catch { return error }
    return nil
  }

  @Test func aPathThatTheKernelResolvesLeadsToTheSamePlace() throws {
    try directory.write("x", to: "a/b/file")
    try link("to-b", to: "a/b")
    try link("a/up", to: "../a/./b/../b")
    try link("absolute", to: directory.file("to-b"))
    try link("file-link", to: "absolute/file")
    try link("chain", to: "file-link")
    let paths = [
      "a/b/file", "./a//b/./file", "a/b/../b/file", "to-b/file", "a/up/file", "absolute/file", "file-link",
      "chain", "to-b/../b/file", "../../../../../../../..\(directory.path)/a/b/file",
    ]
    for name in paths {
      let resolved = try #require(realpath(directory.file(name), nil))
      defer { free(resolved) }
      #expect(try path(name) == String(cString: resolved), "\(name)")
      let location = try located(directory.file(name))
      #expect(location.name == "file")
      #expect(
        try location.directory.status(of: "file").isSameFile(
          as: #require(FileStatus(of: directory.file(name)))))
    }
  }

  @Test func aRelativePathBeginsInTheWorkingDirectory() throws {
    let location = try located("any-name")
    #expect(location.path == FileManager.default.currentDirectoryPath + "/any-name")
    #expect(try location.directory.status(of: ".").isSameFile(as: #require(FileStatus(of: "."))))
    #expect(throws: FileSystemError(ENOENT)) { try located("") }
  }

  @Test func theLastNameNeedNotExistAndALinkThereToNothingIsThePlace() throws {
    try directory.makeDirectory("a")
    #expect(try path("a/new") == directory.file("a/new"))
    try link("dangling", to: "a/missing/file")
    #expect(try path("dangling") == directory.file("dangling"))
    try link("to-new", to: "a/new")
    #expect(try path("to-new") == directory.file("to-new"))
    try directory.write("x", to: "a/new")
    #expect(try path("to-new") == directory.file("a/new"))
    try link("second", to: "to-new")
    #expect(try path("second") == directory.file("a/new"))
    #expect(try path("second", followingLink: false) == directory.file("second"))
  }

  @Test func whatCannotBeResolvedHasTheKernelsError() throws {
    try directory.write("x", to: "file")
    try link("loop", to: "loop")
    try link("round", to: "a-round")
    try link("a-round", to: "./round")
    #expect(failure("missing/file")?.number == ENOENT)
    #expect(failure("file/below")?.number == ENOTDIR)
    #expect(failure("file/")?.number == ENOTDIR)
    #expect(failure("new/")?.number == ENOENT)
    #expect(failure("loop")?.number == ELOOP)
    #expect(failure("round/file")?.number == ELOOP)
    #expect(failure(String(repeating: "n", count: 300))?.number == ENAMETOOLONG)
    for name in [".", "..", "/"] {
      #expect(failure(name)?.number == EISDIR, "\(name)")
    }
    #expect(throws: FileSystemError(EISDIR)) { try located("/") }
    try link("to-directory", to: ".")
    #expect(failure("to-directory")?.number == EISDIR)
  }

  @Test func fortyLinksAreFollowedAsByTheKernel() throws {
    try directory.write("x", to: "l0")
    for number in 1...41 { try link("l\(number)", to: "l\(number - 1)") }
    #expect(try path("l40") == directory.file("l0"))
    #expect(FileStatus(of: directory.file("l40")) != nil)
    #expect(failure("l41")?.number == ELOOP)
    #expect(FileStatus(of: directory.file("l41")) == nil)
  }

  @Test func aLinkThatIsExchangedLaterHasNoEffect() throws {
    try directory.write("first", to: "one/file")
    try directory.write("second", to: "two/file")
    try link("link", to: "one")
    let location = try located(directory.file("link/file"))
    #expect(rename(directory.file("one"), directory.file("moved")) == 0)
    try link("one", to: "two")
    #expect(unlink(directory.file("link")) == 0)
    try link("link", to: "two")
    let file = try location.directory.open("file", writable: false)
    #expect(try file.status().size == 5)
  }

  @Test func aLinkInTheLastPlaceIsNotFollowedWhenTheFileIsOpened() throws {
    try directory.write("x", to: "target")
    let location = try located(directory.file("later"))
    try link("later", to: "target")
    #expect(throws: FileSystemError(ELOOP)) { try location.directory.open("later", writable: true) }
    #expect(throws: FileSystemError(EEXIST)) { try location.directory.create("later") }
  }

  // MARK: Links of other users

  private static let neighbour: uid_t = 54_321
  private static let onlyRoot: Comment = "only root can give a link to another user"

  /// A directory of this user with a file, and a shared directory of `owner` with a link of `linkOwner` to the file and
  /// one to the file's directory.
  private func share(mode: Int, owner: uid_t, linkOwner: uid_t) throws {
    try directory.write("mine", to: "mine/file")
    try directory.makeDirectory("shared")
    for (name, target) in [("link", "../mine/file"), ("way", "../mine")] {
      try link("shared/\(name)", to: target)
      try #require(lchown(directory.file("shared/\(name)"), linkOwner, linkOwner) == 0)
    }
    try #require(chown(directory.file("shared"), owner, owner) == 0)
    try #require(chmod(directory.file("shared"), mode_t(mode)) == 0)
  }

  @Test(.enabled(if: geteuid() == 0, onlyRoot), arguments: ["shared/link", "shared/way/file"])
  func anotherUsersLinkInASharedDirectoryIsRefused(name: String) throws {
    try share(mode: 0o1777, owner: 0, linkOwner: Self.neighbour)
    let error = try #require(failure(name))
    let refused = name.split(separator: "/").prefix(2).joined(separator: "/")
    #expect(error == FileSystemError(EACCES, refusedLink: directory.file(refused)))
  }

  @Test(.enabled(if: geteuid() == 0, onlyRoot)) func theSameLinkMayBeNamedButNotFollowed() throws {
    try share(mode: 0o1777, owner: 0, linkOwner: Self.neighbour)
    #expect(try path("shared/link", followingLink: false) == directory.file("shared/link"))
    #expect(failure("shared/way/file", followingLink: false)?.number == EACCES)
  }

  /// The cases in which the kernel follows the link, too.
  @Test(
    .enabled(if: geteuid() == 0, onlyRoot),
    arguments: [
      (0o1777, 0, 0), (0o1777, 54_321, 0), (0o1777, 54_321, 54_321), (0o777, 0, 54_321), (0o1775, 0, 54_321),
      (0o1755, 0, 54_321),
    ] as [(Int, uid_t, uid_t)])
  func ourLinkAndThatOfTheDirectorysOwnerAreFollowed(mode: Int, owner: uid_t, linkOwner: uid_t) throws {
    try share(mode: mode, owner: owner, linkOwner: linkOwner)
    #expect(try path("shared/link") == directory.file("mine/file"))
    #expect(try path("shared/way/file") == directory.file("mine/file"))
  }

  @Test(.enabled(if: geteuid() == 0, onlyRoot)) func nothingIsWrittenThroughAnotherUsersLink() throws {
    try share(mode: 0o1777, owner: 0, linkOwner: Self.neighbour)
    for name in ["shared/link", "shared/way/file"] {
      let error = try #require(
        thrown { () throws(SecretError) in
          try PrivateFile.write("new".utf8.span, to: directory.file(name), replacing: true)
        })
      #expect(error.code == .denied && error.reason.contains("belongs to another user"), "\(error)")
    }
    #expect(try directory.text(of: "mine/file") == "mine")
    let error = thrown { () throws(SecretError) in
      try PrivateDirectory.create(directory.file("shared/way/new/below"))
    }
    #expect(error?.code == .denied)
    #expect(try Path.names(inDirectory: directory.file("mine")) == ["file"])
  }

  @Test func aDirectoryOnTheWayNeedNotBeReadable() throws {
    let file = try directory.write("", to: "closed/below/file")
    for (name, mode) in [("", 0o711), ("closed", 0o111), ("closed/below", 0o755)] {
      #expect(chmod(directory.file(name), mode_t(mode)) == 0)
    }
    defer { chmod(directory.file("closed"), 0o700) }
    let names = try withFileAccess(ofUser: 54_321) {
      try LinuxFileSystem().locate(file, followingLink: true).directory.names()
    }
    #expect(names == ["file"])
  }
}
