import Coffer
import CofferCore
import CofferTestSupport
import Foundation
import Testing

/// A value with a definition in programs of their own. Each has one change that would wait for an hour.
@Suite(.timeLimit(.minutes(30))) struct EndOfProcessTests {
  let directory: TemporaryDirectory
  let vault: VaultBackend

  init() throws {
    directory = try TemporaryDirectory(inMemory: true)
    let (path, key) = (directory.file("test.vault"), [UInt8](repeating: 7, count: 32))
    try VaultBackend.create(at: path, credential: .key(SecretBytes(key)))
    vault = VaultBackend(path: path, key: SecretBytes(key))
  }

  private func start(_ mode: String) throws -> (program: ChildProcess, output: FileHandle, errors: FileHandle) {
    let probe = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
      .appending(path: "CofferProbe").path()
    let (output, errors) = (Pipe(), Pipe())
    let program = try ChildProcess(
      [probe, "value", directory.file("test.vault"), mode], environment: directory.environment(),
      streams: [
        .null, .descriptor(output.fileHandleForWriting.fileDescriptor),
        .descriptor(errors.fileHandleForWriting.fileDescriptor),
      ])
    try output.fileHandleForWriting.close()
    try errors.fileHandleForWriting.close()
    return (program, output.fileHandleForReading, errors.fileHandleForReading)
  }

  /// Starts the program, and waits until its change waits.
  private func startAndWait(_ mode: String) throws -> (program: ChildProcess, errors: FileHandle) {
    let (program, output, errors) = try start(mode)
    #expect(try output.read(upToCount: 6) == Data("ready\n".utf8))
    #expect(try vault.get("counter", service: "probe") == nil)
    return (program, errors)
  }

  private func count() throws -> String? { try vault.text("counter", service: "probe") }

  @Test(arguments: [("return", Int32(0)), ("exit", 3)])
  func aDelayedChangeIsStoredAtANormalEnd(_ mode: String, _ status: Int32) throws {
    #expect(try start(mode).program.end() == status)
    #expect(try count() == #"{"count":1}"#)
  }

  /// The change really waits in the memory of the program.
  @Test(arguments: [SIGTERM, SIGINT, SIGHUP, SIGKILL])
  func aProcessThatASignalEndsLosesADelayedChange(_ signal: Int32) throws {
    let program = try startAndWait("wait").program
    program.send(signal)
    #expect(try program.end() == -signal)
    #expect(try count() == nil)
  }

  @Test func aProgramThatHandlesASignalStoresTheChange() throws {
    let program = try startAndWait("handle").program
    program.send(SIGTERM)
    #expect(try program.end() == 4)
    #expect(try count() == #"{"count":1}"#)
  }

  /// The change belongs to the original process, which here ends by `_exit`.
  @Test func aCopyOfTheProcessByForkStoresNothing() throws {
    let (program, output, errors) = try start("daemon")
    #expect(try program.end() == 0)
    // The end of the copy.
    #expect(try output.readToEnd() == Data("copy\n".utf8))
    #expect(try errors.readToEnd() ?? Data() == Data())
    #expect(try count() == nil)
  }

  @Test func aChangeThatCannotBeStoredAtTheEndIsReported() throws {
    let (program, errors) = try startAndWait("handle and exit")
    try FileManager.default.moveItem(atPath: directory.file("test.vault"), toPath: directory.file("moved"))
    program.send(SIGTERM)
    #expect(try program.end() == 3)
    let text = String(decoding: try errors.readToEnd() ?? Data(), as: UTF8.self)
    #expect(text.hasPrefix(#"The last change of "probe/counter" is lost: "#), "\(text)")
    #expect(text.contains("\"count\"") == false)
  }

  @Test func fourProcessesThatMigrateAtOnceLeaveOneValueAndLoseNothing() throws {
    try vault.setHistoryLimit(try #require(HistoryLimit(versions: 1000, days: 0)))
    try vault.write("1000", "counter", service: "probe")
    let programs = try (0..<4).map { _ in try start("migrate") }
    for (program, _, errors) in programs {
      #expect(try program.end() == 0)
      #expect(try errors.readToEnd() ?? Data() == Data())
    }
    #expect(try count() == #"{"count":1100}"#)
    // The first version, its conversion, and the changes.
    #expect(try vault.versions(of: identifier("counter", service: "probe")).count == 102)
  }
}
