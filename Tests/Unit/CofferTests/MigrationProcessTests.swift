import Coffer
import CofferCore
import CofferTestSupport
import Foundation
import Testing

/// A value with a definition in several programs at once.
@Suite(.timeLimit(.minutes(30))) struct MigrationProcessTests {
  @Test func fourProcessesThatMigrateAtOnceLeaveOneValueAndLoseNothing() throws {
    let directory = try TemporaryDirectory(inMemory: true)
    let (path, key) = (directory.file("test.vault"), [UInt8](repeating: 7, count: 32))
    let vault = try VaultBackend.create(
      at: path, credential: .key(SecretBytes(key)), history: #require(HistoryLimit(versions: 1000, days: 0)))
    try vault.write("1000", "counter", service: "probe")
    let probe = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(path: "CofferProbe")
      .path()
    let programs = try (0..<4).map { _ in
      let errors = Pipe()
      let program = try ChildProcess(
        [probe, "migrate", path], environment: directory.environment(),
        streams: [.null, .null, .descriptor(errors.fileHandleForWriting.fileDescriptor)])
      try errors.fileHandleForWriting.close()
      return (program, errors.fileHandleForReading)
    }
    for (program, errors) in programs {
      #expect(try program.end() == 0)
      #expect(try errors.readToEnd() ?? Data() == Data())
    }
    #expect(try vault.text("counter", service: "probe") == #"{"count":1100}"#)
    // The first version, its conversion, and the changes.
    #expect(try vault.versions(of: identifier("counter", service: "probe")).count == 102)
  }
}
