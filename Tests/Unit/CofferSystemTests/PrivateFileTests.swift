import CofferCore
import CofferSystem
import CofferTestSupport
import Foundation
import Testing

@Suite struct PrivateFileTests {
  let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func read(_ name: String, limit: Int = 100) throws(SecretError) -> String? {
    try PrivateFile.read(directory.file(name), as: "The key file", limit: limit)?.string()
  }

  private func write(_ text: String, to name: String, replacing: Bool) throws(SecretError) {
    try PrivateFile.write(text.utf8.span, to: directory.file(name), replacing: replacing)
  }

  private var names: [String] {
    get throws { try Path.names(inDirectory: directory.path).sorted() }
  }

  // MARK: Reading

  @Test func aFileIsReadUpToTheLimit() throws {
    try directory.write("four", to: "file")
    #expect(try read("file", limit: 4) == "four")
    let error = try #require(thrown { () throws(SecretError) in _ = try read("file", limit: 3) })
    #expect(error.code == .configuration && error.reason == "The key file has more than 3 bytes.")
  }

  @Test func aMissingFileIsNil() throws {
    #expect(try read("missing") == nil)
    try directory.write("", to: "file")
    #expect(try read("file/below") == nil)
    #expect(try read("file") == "")
  }

  @Test func anExposedFileIsDenied() throws {
    try directory.write("key", to: "file", mode: 0o644)
    let error = try #require(thrown { () throws(SecretError) in _ = try read("file") })
    #expect(error.code == .denied && error.reason == "The key file is open to other users.")
    #expect(error.advice?.contains("chmod 600") == true)
  }

  @Test(arguments: ["directory", "fifo"])
  func aPathToSomethingElseIsAnErrorThatComesAtOnce(kind: String) throws {
    if kind == "fifo" { #expect(mkfifo(directory.file("it"), 0o600) == 0) }
    if kind == "directory" { #expect(mkdir(directory.file("it"), 0o700) == 0) }
    let error = try #require(thrown { () throws(SecretError) in _ = try read("it") })
    #expect(error.code == .configuration && error.reason == "The key file is not a regular file.")
  }

  @Test(arguments: [0o664, 0o646, 0o666]) func aTextFileThatOthersMayWriteIsDenied(mode: Int) throws {
    let file = try directory.write("text", to: "file", mode: mode)
    let error = try #require(
      thrown { () throws(SecretError) in _ = try PrivateFile.text(of: file, as: "The file", limit: 100) })
    #expect(error.code == .denied && error.reason == "The file can be changed by other users.")
    #expect(error.advice?.contains("chmod go-w") == true)
  }

  @Test(.enabled(if: geteuid() == 0, "only root can give a file to another user"))
  func aFileOfAnotherUserIsDeniedToRoot() throws {
    let file = try directory.write("text", to: "file")
    #expect(chown(file, 54_321, 54_321) == 0)
    let failures = [
      thrown { () throws(SecretError) in _ = try read("file") },
      thrown { () throws(SecretError) in _ = try PrivateFile.text(of: file, as: "The key file", limit: 100) },
    ]
    for error in failures {
      #expect(error?.code == .denied && error?.reason == "The key file belongs to another user.")
    }
  }

  @Test func aTextFileMayBeReadableByOthersAndMustBeUTF8() throws {
    let file = try directory.write("text", to: "file", mode: 0o644)
    #expect(try PrivateFile.text(of: file, as: "The file", limit: 100) == "text")
    #expect(try PrivateFile.text(of: directory.file("missing"), as: "The file", limit: 100) == nil)
    try Data([0xFF, 0xFE]).write(to: URL(fileURLWithPath: file))
    let error = thrown { () throws(SecretError) in
      _ = try PrivateFile.text(of: file, as: "The file", limit: 100)
    }
    #expect(error?.code == .configuration)
  }

  // MARK: Writing

  @Test(arguments: [true, false])
  func aNewFileHasMode600AndNothingElseIsLeft(replacing: Bool) throws {
    let path = directory.file("file")
    try withUmask(0) { try PrivateFile.write("text".utf8.span, to: path, replacing: replacing) }
    #expect(try directory.text(of: "file") == "text")
    #expect(try directory.mode(of: "file") == 0o600)
    #expect(try names == ["file"])
  }

  @Test func anExistingFileStaysUnlessItMayBeReplaced() throws {
    try directory.write("old", to: "file", mode: 0o644)
    let error = thrown { () throws(SecretError) in try write("new", to: "file", replacing: false) }
    #expect(error?.code == .alreadyExists)
    #expect(try directory.text(of: "file") == "old")
    try write("new", to: "file", replacing: true)
    #expect(try directory.text(of: "file") == "new")
    #expect(try directory.mode(of: "file") == 0o600)
    #expect(try names == ["file"])
  }

  @Test func aLinkStaysAndItsTargetIsReplaced() throws {
    try directory.write("old", to: "below/target")
    try FileManager.default.createSymbolicLink(
      atPath: directory.file("link"), withDestinationPath: "below/target")
    #expect(
      thrown { () throws(SecretError) in try write("new", to: "link", replacing: false) }?.code
        == .alreadyExists)
    try write("new", to: "link", replacing: true)
    #expect(try directory.text(of: "below/target") == "new")
    #expect(
      try FileManager.default.destinationOfSymbolicLink(atPath: directory.file("link")) == "below/target")
    #expect(try Path.names(inDirectory: directory.file("below")) == ["target"])
  }

  @Test func aLinkToNothingIsAnExistingFileUnlessItMayBeReplaced() throws {
    try FileManager.default.createSymbolicLink(
      atPath: directory.file("link"), withDestinationPath: "missing")
    #expect(
      thrown { () throws(SecretError) in try write("new", to: "link", replacing: false) }?.code
        == .alreadyExists)
    #expect(try names == ["link"])
    try write("new", to: "link", replacing: true)
    #expect(try directory.text(of: "link") == "new")
  }

  @Test func onlyARegularFileIsReplaced() throws {
    #expect(mkfifo(directory.file("fifo"), 0o600) == 0)
    for path in ["fifo", "."] {
      let error = thrown { () throws(SecretError) in try write("new", to: path, replacing: true) }
      #expect(error?.code == .io, "\(path)")
    }
    #expect(try names == ["fifo"])
  }

  @Test func whatIsNoFileIsThereAlreadyToo() throws {
    #expect(mkfifo(directory.file("fifo"), 0o600) == 0)
    try directory.makeDirectory("below")
    for path in ["fifo", "below"] {
      let error = thrown { () throws(SecretError) in try write("new", to: path, replacing: false) }
      #expect(error?.code == .alreadyExists, "\(path)")
    }
    #expect(try names == ["below", "fifo"])
  }

  @Test func aDirectoryThatDoesNotExistIsNamedInTheError() throws {
    for replacing in [true, false] {
      let error = thrown { () throws(SecretError) in
        try write("x", to: "missing/file", replacing: replacing)
      }
      #expect(error?.code == .io && error?.reason.contains("missing/file") == true)
    }
  }

  @Test func aFullDiskLeavesNoFileBehind() throws {
    // A limit on the size of files stands for a full disk. Its signal is ignored, so the call fails instead.
    signal(SIGXFSZ, SIG_IGN)
    var limit = rlimit()
    #expect(getrlimit(__rlimit_resource_t(1), &limit) == 0)
    try directory.write("old", to: "file")
    let text = String(repeating: "x", count: 40 << 20)
    var lowered = limit
    lowered.rlim_cur = 32 << 20
    #expect(setrlimit(__rlimit_resource_t(1), &lowered) == 0)
    let error = thrown { () throws(SecretError) in try write(text, to: "file", replacing: true) }
    #expect(setrlimit(__rlimit_resource_t(1), &limit) == 0)
    #expect(error?.code == .io)
    #expect(try directory.text(of: "file") == "old")
    #expect(try names == ["file"])
  }

  @Test func concurrentWritersLeaveOneWholeFile() throws {
    let texts = (0..<8).map { String(repeating: "\($0)", count: 100_000) }
    DispatchQueue.concurrentPerform(iterations: texts.count) { index in
      #expect(
        thrown { () throws(SecretError) in try write(texts[index], to: "file", replacing: true) } == nil)
    }
    #expect(texts.contains(try directory.text(of: "file")))
    #expect(try names == ["file"])
  }

  // MARK: What killed writers leave

  private let abandoned = ".file.0123456789abcdef.unfinished"

  @Test(arguments: [true, false]) func whatAKilledWriterLeftIsRemoved(replacing: Bool) throws {
    try directory.write("rest", to: abandoned)
    try write("text", to: "file", replacing: replacing)
    #expect(try names == ["file"])
  }

  @Test func aFileInUseAndFilesOfOtherNamesStay() throws {
    let others = [
      ".file.0123456789abcdef.unfinished~", ".file.0123456789abcde.unfinished",
      ".file.0123456789abcdef.unfinishe~",
      ".other.0123456789abcdef.unfinished",
      ".file.0123456789abcdeg.unfinished", ".file.00123456789abcdef.unfinished",
      ".file.0123456789abcde`.unfinished", ".file.0123456789abcde:.unfinished",
      "file.0123456789abcdef.unfinished", "..file.0123456789abcdef.unfinished", ".file.0123456789abcdef",
      ".file.+123456789abcdef.unfinished", ".file.0123456789ABCDEF.unfinished",
      ".file.0123456789abcdef.finished",
    ]
    for name in others { try directory.write("x", to: name) }
    try directory.makeDirectory(".file.1123456789abcdef.unfinished")
    #expect(mkfifo(directory.file(".file.2123456789abcdef.unfinished"), 0o600) == 0)
    #expect(symlink("file", directory.file(".file.3123456789abcdef.unfinished")) == 0)
    try directory.write("in use", to: abandoned)
    let user = try Descriptor(opening: directory.file(abandoned), O_RDWR)
    #expect(flock(user.number, LOCK_EX) == 0)
    try write("text", to: "file", replacing: true)
    let kept =
      others + [
        abandoned, ".file.1123456789abcdef.unfinished", ".file.2123456789abcdef.unfinished",
        ".file.3123456789abcdef.unfinished", "file",
      ]
    #expect(try names == kept.sorted())
    withExtendedLifetime(user) {}
  }

  @Test(.enabled(if: geteuid() == 0, "only root can give a file to another user"))
  func whatAnotherUserPutThereStays() throws {
    try directory.write("x", to: abandoned)
    #expect(chown(directory.file(abandoned), 54_321, 54_321) == 0)
    try write("text", to: "file", replacing: true)
    #expect(try names == [abandoned, "file"])
  }

  @Test func aLongNameHasRoomForItsTemporaryName() throws {
    let name = String(repeating: "n", count: 199) + "é" + String(repeating: "n", count: 54)
    for _ in 1...2 { try write("text", to: name, replacing: true) }
    #expect(try names == [name])
  }

  @Test func aLinkInProcToWhatIsNoFileIsNotReplaced() throws {
    let pipe = try Descriptor.pipe()
    try FileManager.default.createSymbolicLink(
      atPath: directory.file("link"), withDestinationPath: "/proc/self/fd/\(pipe.writing.number)")
    let error = thrown { () throws(SecretError) in try write("text", to: "link", replacing: true) }
    #expect(error?.code == .io && error?.reason.contains("not a regular file") == true)
    #expect(try names == ["link"])
    withExtendedLifetime(pipe) {}
  }
}
