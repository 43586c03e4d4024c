import CofferTestSupport
import Foundation
import Testing

/// The system calls of changes to a vault, as strace shows them: the order of writes and barriers, and what is absent.
@Suite(.needs("strace"), .timeLimit(.minutes(30))) struct VaultSystemCallTests {
  private let tool: TracedTool

  init() throws { tool = try TracedTool() }

  private static let changes =
    "openat,flock,pwrite64,ftruncate,fchmod,fsync,fdatasync,linkat,renameat,renameat2"

  /// The parts of a vault that a power failure may lose after a call.
  private struct Unwritten {
    var frames = false
    var slots: Set<Int> = []
  }

  /// A slot names only frames that are on the disk, and one slot always is: no slot is written while a write outside of
  /// the slots, or the other slot, waits for a barrier. A record of what was seen is written last.
  @Test func aChangeIsOnTheDiskBeforeASlotNamesIt() throws {
    // The name of the file is made durable before the lock is taken.
    let lines = try tool.trace("secret set b --from-file t", of: Self.changes, from: "fsync(")
    let lock = try #require(lines.first { $0.contains("LOCK_EX|LOCK_NB") })
    let vault = try #require(lock.split(separator: "(").last?.prefix { $0.isNumber })
    var (unwritten, names, written) = (Unwritten(), false, 0)
    for line in lines {
      if line.hasPrefix("fdatasync(\(vault))") || line.hasPrefix("fsync(\(vault))") {
        unwritten = Unwritten()
      } else if line.hasPrefix("fsync(") {
        names = true
      } else if line.hasPrefix("pwrite64(\(vault), ") {
        // The text that is written may contain any character.
        let numbers = try #require(line.components(separatedBy: ", ").last?.split(separator: ")").first)
        let offset = try #require(Int(numbers))
        let isSlot = line.contains(", 4096, \(offset))") && [4096, 8192].contains(offset)
        if isSlot {
          #expect(!unwritten.frames && unwritten.slots.subtracting([offset]).isEmpty && names, "\(lines)")
          unwritten.slots.insert(offset)
          written += 1
        } else {
          unwritten.frames = true
        }
      } else if line.hasPrefix("pwrite64(") {
        #expect(written >= 1 && !unwritten.frames && unwritten.slots.count <= 1, "\(lines)")
      }
    }
    #expect(written >= 1 && !unwritten.frames, "\(lines)")
  }

  /// The new file is private and locked before it has contents, and its name is on the disk before anything is
  /// recorded.
  @Test func anotherFileIsOnTheDiskBeforeItTakesThePlaceOfTheVault() throws {
    for command in ["secret rekey", "secret key add --key-file K"] {
      let lines = try tool.trace(command, of: Self.changes, from: "O_CREAT|O_EXCL")
      let mode = try tool.index(lines, #"^fchmod\(\d+, 0600\) += 0"#)
      let lock = try tool.index(lines, #"^flock\(\d+, LOCK_EX\|LOCK_NB\) += 0"#)
      let first = try tool.index(lines, #"^pwrite64\("#)
      let rename = try tool.index(lines, #"^renameat\("#)
      let before = lines[..<rename].map { $0.prefix { $0 != "(" } }
      #expect(mode < first && lock < first && before.last == "fsync", "\(lines)")
      let after = lines[(rename + 1)...].map { $0.prefix { $0 != "(" } }
      let barrier = try #require(after.firstIndex(of: "fsync"), "\(lines)")
      #expect(!after[..<barrier].contains("pwrite64"), "\(lines)")
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

  /// On a full disk the part of a change that was written is freed.
  @Test func aFailedWriteIsTakenBack() throws {
    try tool.perform(
      """
      vault=../home/data/coffer/default.vault; size=$(stat -c %s $vault); head -c 5000 /dev/zero > big
      prlimit --fsize=$((size + 1000)) secret set b --from-file big; test $? = 74
      test "$(stat -c %s $vault)" = $size && secret verify > /dev/null
      """)
  }

  @Test func soIsThatOfALargeTransaction() throws {
    try tool.perform(
      """
      vault=../home/data/coffer/default.vault; size=$(stat -c %s $vault)
      for n in 1 2 3 4; do echo "b$n=$(head -c 900000 /dev/zero | tr '\\0' x)"; done > many
      prlimit --fsize=$((size + 2000000)) secret import many; test $? = 74
      test "$(stat -c %s $vault)" = $size && secret verify > /dev/null && secret import many
      secret get b4 | wc -c | grep -q 900000
      """)
  }

  /// If the last barrier fails, the change is in the file, but it is unknown whether it is on the disk.
  @Test func afterTheLastBarrierAnErrorSaysThatTheChangeIsThere() throws {
    for (barrier, isThere) in [(1, false), (2, true)] {
      let said = try tool.fail(
        "fdatasync:error=EIO:when=\(barrier)", "secret set b\(barrier) --from-file t", status: 74)
      #expect(said.contains("The change is in the vault") == isThere, "\(said)")
      try tool.perform("secret get b\(barrier) > /dev/null", status: isThere ? 0 : 1)
    }
  }

  /// Three writes precede the record: the change and the two commit slots.
  @Test func aRecordOfTheVaultThatCannotBeWrittenIsSaid() throws {
    let said = try tool.fail("pwrite64:error=EIO:when=4+", "secret set b --from-file t", status: 0)
    #expect(said.contains("cannot be recorded"), "\(said)")
    try tool.perform("secret get b > /dev/null")
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
