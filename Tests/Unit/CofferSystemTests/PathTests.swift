import CofferCore
import CofferSystem
import CofferTestSupport
import Foundation
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(30))) struct PathTests {
  let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  @Test(arguments: [
    ("a", "."), ("/a", "/"), ("a/b", "a"), ("/a/b", "/a"), ("a/b/", "a/b"), ("/", "/"), ("", "."),
  ])
  func theParentIsWhatIsBeforeTheLastSlash(path: String, parent: String) {
    #expect(Path.parent(of: path) == parent)
  }

  @Test func aRelativePathBecomesAbsolute() throws {
    #expect(try Path.absolute("/a/../b") == "/a/../b")
    #expect(try Path.absolute("a") == FileManager.default.currentDirectoryPath + "/a")
  }

  @Test func aRelativePathIsAboutTheWorkingDirectory() throws {
    try directory.write("text", to: "file")
    try directory.makeDirectory("below")
    let (path, status) = (directory.path, FileStatus(of: directory.file("file")))
    let found = try withWorkingDirectory(path) {
      let file = try Descriptor(opening: "file", O_RDONLY)
      let opened = try FileManager.default.destinationOfSymbolicLink(
        atPath: "/proc/thread-self/fd/\(file.number)")
      let lock = try ByteLock.tryLock("locks", offset: 0)
      let place = try LinuxFileSystem().locate("below/../file", followingLink: true)
      let listed = try (Path.names(inDirectory: "."), place.directory.names())
      withExtendedLifetime((file, lock)) {}
      return (
        FileStatus(of: "file"), opened, place.path, listed, try Path.absolute("file"),
        try Path.exists("file")
      )
    }
    #expect(status != nil && found.0 == status)
    let names: Set = ["below", "file", "locks"]
    #expect(Set(found.3.0) == names && Set(found.3.1) == names)
    let opened = try Descriptor(opening: path, O_RDONLY)
    let resolved = try FileManager.default.destinationOfSymbolicLink(
      atPath: "/proc/self/fd/\(opened.number)")
    withExtendedLifetime(opened) {}
    #expect([found.1, found.2, found.4].allSatisfy { $0 == resolved + "/file" } && found.5)
  }

  @Test(.timeLimit(.minutes(30))) func onlyADirectoryIsListed() throws {
    try directory.write("", to: "file")
    #expect(mkfifo(directory.file("fifo"), 0o600) == 0)
    for name in ["file", "fifo"] {
      #expect(throws: FileSystemError(ENOTDIR)) { try Path.names(inDirectory: directory.file(name)) }
    }
  }

  @Test func existenceFollowsLinks() throws {
    let file = try directory.write("", to: "file")
    #expect(try Path.exists(file) && Path.exists(directory.path))
    #expect(try !Path.exists(directory.file("missing")) && !Path.exists(file + "/below"))
    try FileManager.default.createSymbolicLink(atPath: directory.file("link"), withDestinationPath: "file")
    #expect(Path.isSameFile(file, directory.file("link")))
    #expect(!Path.isSameFile(file, directory.path) && !Path.isSameFile(file, directory.file("missing")))
    let long = directory.file(String(repeating: "x", count: 300))
    #expect(thrown { () throws(SecretError) in _ = try Path.exists(long) }?.code == .io)
  }

  @Test func missingDirectoriesAreCreatedWithMode700() throws {
    let path = directory.file("a/b/c")
    try withUmask(0) { try PrivateDirectory.create(path) }
    for name in ["a", "a/b", "a/b/c"] { #expect(try directory.mode(of: name) == 0o700) }
    let other = directory.file("f/g")
    try withUmask(0o777) { try PrivateDirectory.create(other) }
    for name in ["f", "f/g"] { #expect(try directory.mode(of: name) == 0o700) }
    for name in ["d/", "e/f///"] { try PrivateDirectory.create(directory.file(name)) }
    #expect(try directory.mode(of: "d") == 0o700 && directory.mode(of: "e/f") == 0o700)
    #expect(chmod(directory.file("a"), 0o755) == 0)
    try PrivateDirectory.create(directory.file("a"))
    #expect(try directory.mode(of: "a") == 0o755)
  }

  /// `PWD` is used only if it is an absolute path to the working directory. The path may contain links.
  @Test func theWorkingDirectoryHasTheNameThatPWDGives() async {
    await #expect(processExitsWith: .success) {
      let directory = try TemporaryDirectory()
      let real = try #require(realpath(directory.path, nil).map { String(cString: $0) })
      try directory.makeDirectory("real")
      try FileManager.default.createSymbolicLink(
        atPath: directory.file("link"), withDestinationPath: "real")
      #expect(chdir(directory.file("link")) == 0)
      for (named, expected) in [
        (directory.file("link"), directory.file("link")), (".", real + "/real"), ("", real + "/real"),
        ("../link", real + "/real"), (directory.path, real + "/real"), ("/nonexistent", real + "/real"),
      ] {
        setenv("PWD", named, 1)
        #expect(try Path.absolute("x") == expected + "/x", "\(named)")
      }
      #expect(chdir("/") == 0)
    }
  }

  @Test func aDirectoryThatManyCreateIsCreatedOnce() throws {
    for round in 0..<100 {
      DispatchQueue.concurrentPerform(iterations: 8) { _ in
        let error = thrown { () throws(SecretError) in
          try PrivateDirectory.create(directory.file("\(round)/a/b"))
        }
        #expect(error == nil)
      }
      #expect(try directory.mode(of: "\(round)/a/b") == 0o700)
    }
  }

  @Test(.enabled(if: geteuid() == 0, "only root can act as another user"))
  func aDirectoryThatMayNotBeWrittenToIsDenied() throws {
    #expect(chmod(directory.path, 0o755) == 0)
    let path = directory.file("new")
    let code = try withFileAccess(ofUser: 54_321) {
      thrown { () throws(SecretError) in try PrivateDirectory.create(path) }?.code
    }
    #expect(code == .denied)
  }

  @Test func aFileInTheWayOfADirectoryIsAnError() throws {
    try directory.write("", to: "file")
    for path in ["file", "file/below"] {
      let error = thrown { () throws(SecretError) in try PrivateDirectory.create(directory.file(path)) }
      #expect(error?.code == .io && error?.reason.contains(directory.file("file")) == true)
    }
  }

  @Test func aDirectoryLockExcludesOthersAndTimesOut() throws {
    let path = directory.path
    try PrivateDirectory.withLock(path, timeout: .seconds(60)) { () throws(SecretError) in
      do { #expect(try PrivateDirectory.tryLock(path) == nil) } catch { Issue.record("\(error)") }
      let error = thrown { () throws(SecretError) in
        try PrivateDirectory.withLock(path, timeout: .milliseconds(20)) {}
      }
      #expect(error?.code == .timedOut)
    }
    // A process that another test is just starting holds a copy of the lock until it executes its program.
    try PrivateDirectory.withLock(path, timeout: .seconds(60)) {}
    #expect(throws: FileSystemError(ENOENT)) { try PrivateDirectory.tryLock(directory.file("missing")) }
    // Only a directory can be locked, not a file and not a link.
    try directory.write("", to: "file")
    try directory.makeDirectory("below")
    for (link, target) in [("link", "below"), ("link to a file", "file")] {
      try FileManager.default.createSymbolicLink(
        atPath: directory.file(link), withDestinationPath: target)
    }
    for name in ["file", "link", "link to a file"] {
      #expect(throws: FileSystemError(ENOTDIR), "\(name)") {
        try PrivateDirectory.tryLock(directory.file(name))
      }
    }
  }

  @Test func oneHolderOfADirectoryLockAtATime() throws {
    let path = directory.path
    let isInside = Atomic(false)
    DispatchQueue.concurrentPerform(iterations: 8) { _ in
      let error = thrown { () throws(SecretError) in
        try PrivateDirectory.withLock(path, timeout: .seconds(60)) {
          let wasInside = isInside.exchange(true, ordering: .acquiringAndReleasing)
          #expect(!wasInside)
          usleep(1000)
          isInside.store(false, ordering: .releasing)
        }
      }
      #expect(error == nil)
    }
  }

  @Test func theXDGVariablesAndTheHomeDirectoryGiveTheBaseDirectories() throws {
    func directories(_ environment: [String: String]) -> BaseDirectories {
      BaseDirectories { environment[$0] }
    }
    let home = directories(["HOME": "/home/u", "XDG_DATA_HOME": "relative"])
    #expect(home.path(.data) == "/home/u/.local/share" && home.named(.data) == nil)
    #expect(home.path(.configuration) == "/home/u/.config")
    #expect(home.path(.state) == "/home/u/.local/state")
    let set = directories(["HOME": "/home/u", "XDG_DATA_HOME": "/data"])
    #expect(set.path(.data) == "/data" && set.named(.data) == "/data")
    try directories(["XDG_STATE_HOME": "/state"]).requireHome(for: .state)
  }

  @Test func aUserWithoutAHomeDirectoryIsToldToSetHOME() {
    for home in [nil, "relative"] {
      let error = thrown { () throws(SecretError) in
        try BaseDirectories(user: 4_000_000) { $0 == "HOME" ? home : nil }.requireHome(for: .data)
      }
      #expect(
        error?.code == .configuration
          && error?.reason == "HOME is not set, and the user with the id 4000000 has no home directory.")
      #expect(error?.advice == "Set HOME or XDG_DATA_HOME to an absolute path.")
    }
  }

  @Test func aFileSystemThatCannotBeLookedAtHasNoKind() {
    #expect(FileSystemKind(of: directory.path) != nil && FileSystemKind(of: directory.file("missing")) == nil)
  }

  @Test(arguments: [0, 1, 65_534]) func withoutHOMETheEntryOfTheUserDecides(user: UInt32) throws {
    #expect(BaseDirectories(user: user) { _ in nil }.home == (try listedHome(of: user)))
    #expect(BaseDirectories(user: 54_321) { _ in nil }.home == nil)
  }

  /// The home directory in `/etc/passwd`. Not from `getpwuid`, which has one buffer for all threads.
  private func listedHome(of user: UInt32) throws -> String {
    let entries = try String(contentsOfFile: "/etc/passwd", encoding: .utf8).split(separator: "\n")
      .map { $0.split(separator: ":", omittingEmptySubsequences: false) }
    let entry = entries.first { $0.count > 5 && $0[2] == String(user) }
    return String(try #require(entry, "there is no such user")[5])
  }

  /// sudo may keep the `HOME` of another user for root.
  @Test func rootDoesNotUseTheHomeOfAnotherUser() throws {
    if geteuid() == 0 { #expect(chown(directory.path, 54_321, 54_321) == 0) }
    let kept = ["HOME": directory.path]
    let root = try listedHome(of: 0)
    #expect(BaseDirectories(user: 0) { kept[$0] }.home == root)
    #expect(BaseDirectories(user: 54_321) { kept[$0] }.home == directory.path)
    // Root's own directory, and one that does not exist, are used.
    for home in ["/", "/missing-\(UUID())"] {
      #expect(BaseDirectories(user: 0) { ["HOME": home][$0] }.home == home)
    }
  }

  /// su may keep a variable of another user for root. That user can exchange what is below their directory or behind
  /// their link.
  @Test(.enabled(if: geteuid() == 0, "only root can give a directory to another user"))
  func rootDoesNotUseADirectoryThatAnotherUserCanExchange() throws {
    for name in ["own/below", "theirs/roots"] { try directory.makeDirectory(name) }
    let links = [
      ("own link", "own"), ("link to theirs", "theirs/roots"), ("their link", "own"),
      ("long link", "their link"),
    ]
    for (name, target) in links {
      try FileManager.default.createSymbolicLink(atPath: directory.file(name), withDestinationPath: target)
    }
    #expect(chown(directory.file("theirs"), 54_321, 54_321) == 0)
    #expect(lchown(directory.file("their link"), 54_321, 54_321) == 0)
    func given(_ path: String, _ user: UInt32) -> String? {
      BaseDirectories(user: user) { ["XDG_DATA_HOME": path][$0] }.given("XDG_DATA_HOME")
    }
    for name in ["own", "own/below", "own/missing/below", "own link/below", "missing"] {
      #expect(given(directory.file(name), 0) == directory.file(name))
    }
    for name in [
      "theirs", "theirs/", "theirs/roots", "theirs/missing", "own/../theirs/roots", "link to theirs",
      "their link",
      "their link/below", "long link",
    ] {
      #expect(given(directory.file(name), 0) == nil, "\(name)")
      #expect(given(directory.file(name), 54_321) == directory.file(name))
    }
    // A directory that everybody can write to: it is not used as a home directory, and links of others are not
    // followed.
    #expect(chmod(directory.path, 0o1777) == 0)
    #expect(given(directory.path, 0) == nil && given(directory.path, 54_321) == directory.path)
    let place = directory.path
    #expect(BaseDirectories(user: 0) { ["TMPDIR": place][$0] }.given("TMPDIR") == place)
    #expect(given(directory.file("their link"), 0) == nil && given(directory.file("own"), 0) != nil)
  }
}
