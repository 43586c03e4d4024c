import CofferTestSupport
import Testing

/// The system calls of changes to a vault, as strace shows them: their order, and what else they may not do.
@Suite(.needs("strace"), .timeLimit(.minutes(30))) struct VaultSystemCallTests {
  private let tool: TracedTool

  init() throws { tool = try TracedTool() }

  private static let changes =
    "openat,flock,pwrite64,ftruncate,fchmod,fsync,fdatasync,linkat,renameat,renameat2,unlinkat"

  /// The names of the calls of `command` after the one that contains `start`, up to the one that contains `end`.
  private func names(_ command: String, from start: String, to end: String) throws -> [Substring] {
    let lines = try tool.trace(command, of: Self.changes, from: start)
    let last = try #require(lines.firstIndex { $0.contains(end) }, "\(lines.joined(separator: "\n"))")
    return lines[1...last].map { $0.prefix { $0 != "(" } }
  }

  @Test func aChangeIsOnTheDiskBeforeASlotNamesIt() throws {
    let lines = try tool.trace("secret set b --from-file t", of: Self.changes, from: "LOCK_EX|LOCK_NB")
    let vault = try #require(lines.first?.split(separator: "(").last?.prefix { $0.isNumber })
    // The entry of the directory, the frames, and the slots in turn.
    let expected = [
      "flock(\(vault), LOCK_EX|LOCK_NB)", "fsync(", "pwrite64(\(vault), ", "fdatasync(\(vault))",
      "pwrite64(\(vault), ", "fdatasync(\(vault))", "pwrite64(\(vault), ",
    ]
    #expect(
      lines.count > expected.count && zip(lines, expected).allSatisfy { $0.hasPrefix($1) },
      "\(lines.joined(separator: "\n"))")
    // The record of what was seen is changed last.
    let record = lines[expected.count...].map { $0.prefix { $0 != "(" } }
    #expect(record == ["openat", "flock", "pwrite64", "flock"], "\(lines.joined(separator: "\n"))")
  }

  @Test func anotherFileIsOnTheDiskBeforeItTakesThePlaceOfTheVault() throws {
    for command in ["secret rekey", "secret key add --key-file K"] {
      let calls = try names(command, from: "O_CREAT|O_EXCL", to: "renameat(")
      #expect(calls.first == "fchmod" && calls.dropFirst().first == "flock", "\(command): \(calls)")
      #expect(Set(calls.dropFirst(2).dropLast(2)) == ["pwrite64"], "\(command): \(calls)")
      #expect(calls.suffix(2) == ["fsync", "renameat"], "\(command): \(calls)")
      // The entry of the directory, before anything is recorded.
      #expect(
        try names(command.replacing(" K", with: " L"), from: "renameat(", to: "fsync(") == ["fsync"],
        "\(command)")
    }
  }

  @Test func aFileIsCreatedByANameThatIsFree() throws {
    for command in ["secret rekey", "secret init --vault W --key-file K"] {
      let created = try tool.trace(command, of: "openat").filter { $0.contains("O_CREAT") }
      #expect(
        !created.isEmpty && created.allSatisfy { $0.contains("O_RDWR|O_CREAT|O_EXCL|O_CLOEXEC, 0600)") },
        "\(created)")
    }
  }

  @Test func aFileWhoseModeCannotBeSetIsRemoved() throws {
    let directory = "../home/data/coffer"
    let names = try tool.files(directory)
    try tool.fail("fchmod:error=EPERM", "secret rekey", status: 77)
    #expect(try tool.files(directory) == names)
    try tool.perform("secret verify > /dev/null")
  }

  @Test func aLockThatTheSystemRefusesIsAnError() throws {
    let said = try tool.fail("flock:error=ENOLCK", "secret set b --from-file t", status: 74)
    #expect(said.contains("No locks available"), "\(said)")
    try tool.perform("! secret get b")
  }

  /// posix_spawn(3) has a flag that sets the effective ids to the real ones.
  @Test func aProgramIsStartedWithTheIdsOfTheTool() throws {
    tool.sandbox.environment["EDITOR"] = "true"
    for command in ["secret run --redact --set A=a -- true", "secret edit a"] {
      let ids = try tool.trace(command, of: "setuid,setgid,setreuid,setregid,setresuid,setresgid,setfsuid")
      #expect(ids.isEmpty, "\(command): \(ids)")
    }
  }
}
