import CofferTestSupport
import Foundation
import Testing

/// The system calls of the built tool, as strace shows them, and what is left when one of them fails or is the last.
///
/// The flags and barriers that have no effect within a test are seen here.
@Suite(.needs("strace"), .timeLimit(.minutes(5))) struct SystemCallTests {
  private static let canary = "canary-0d4f6b21c8e7395a"
  private let sandbox: Sandbox

  /// Creates a vault with one secret and a template `t` for it.
  init() throws {
    sandbox = try Sandbox()
    // LD_BIND_NOW: no call of the dynamic linker between those of the tool.
    sandbox.environment["LD_BIND_NOW"] = "1"
    sandbox.environment["CANARY"] = Self.canary
    try perform(
      "secret init && printf %s \"$CANARY\" | secret set a && printf 'value: secret://secret/a\\n' > t")
    sandbox.environment["CANARY"] = nil
  }

  @discardableResult
  private func perform(_ command: String, status: Int32 = 0) throws -> String {
    let result = try sandbox.shell(command)
    try #require(
      result.status == status, "\(command): \(result.status) \(result.outputText)\(result.errorText)")
    return result.errorText
  }

  /// The lines of the trace of `command` from the first one that contains `start`.
  private func trace(_ command: String, of calls: String, from start: String? = nil) throws -> [String] {
    try perform("strace -f -o trace -e trace=\(calls) \(command)")
    let lines = try String(contentsOfFile: "\(sandbox.workingDirectory)/trace", encoding: .utf8)
      .split(separator: "\n").map { String($0.drop { $0.isNumber || $0 == " " }) }
      .filter { !$0.hasPrefix("+++") && !$0.hasPrefix("---") }
    guard let start else { return lines }
    return Array(lines.drop { !$0.contains(start) })
  }

  /// Runs `command` with a fault at a call, by the syntax of `strace --inject`. Returns its messages.
  @discardableResult
  private func fail(_ fault: String, _ command: String, status: Int32) throws -> String {
    try perform("strace -f -o trace -e inject=\(fault) \(command)", status: status)
  }

  private func files(_ directory: String = ".") throws -> [String] {
    try perform("ls -A \(directory) > /dev/null")
    return try sandbox.shell("ls -A \(directory)").outputText.split(separator: "\n").map(String.init)
      .filter { $0 != "trace" }
  }

  private func index(_ lines: [String], _ pattern: String) throws -> Int {
    try #require(
      lines.firstIndex { $0.range(of: pattern, options: .regularExpression) != nil },
      "\(pattern) is not in:\n\(lines.joined(separator: "\n"))")
  }

  // MARK: Flags

  @Test func everyDescriptorIsClosedOnExecution() throws {
    try perform("mkfifo f; secret get a > /dev/null")
    for command in [
      "secret get a", "secret inject -i t -o out", "secret set b --from-file t", "secret rekey",
      "secret key add --key-file K", "secret doctor", "secret export -o e",
    ] {
      let calls = "open,openat,openat2,dup,pipe,pipe2,memfd_create,inotify_init1,socket,fcntl"
      // glibc reads /proc/self/maps itself.
      for line in try trace(command, of: calls)
      where !line.contains("= -1") && !line.contains("/proc/self/maps") {
        if line.hasPrefix("fcntl") {
          #expect(!line.contains("F_DUPFD,"), "\(command): \(line)")
        } else {
          #expect(line.contains("CLOEXEC"), "\(command): \(line)")
        }
      }
    }
  }

  @Test func theVaultIsOpenedByItsNameAloneAndWithoutWaiting() throws {
    let lines = try trace("secret get a", of: "openat")
    let flags = "O_RDWR|O_NOCTTY|O_NONBLOCK|O_NOFOLLOW|O_CLOEXEC"
    let vault = lines.filter { $0.contains("\"default.vault\"") && !$0.contains("O_PATH") }
    #expect(!vault.isEmpty && vault.allSatisfy { $0.contains(flags) && !$0.contains("AT_FDCWD") }, "\(vault)")
    let walked = lines.filter { $0.contains("O_PATH") }
    #expect(!walked.isEmpty && walked.allSatisfy { $0.contains("O_NOFOLLOW") && $0.contains("O_CLOEXEC") })
    // Only one name at a time.
    #expect(
      walked.allSatisfy {
        $0.range(of: #"openat\([A-Z0-9_]+, "(/|[^/"]+)","#, options: .regularExpression) != nil
      }, "\(walked)")
    let key = lines.filter { $0.contains("/coffer/key\"") }
    #expect(
      !key.isEmpty && key.allSatisfy { $0.contains("O_RDONLY|O_NOCTTY|O_NONBLOCK|O_CLOEXEC") }, "\(key)")
  }

  @Test func directoriesAreCreatedInTheDirectoriesThatWereChecked() throws {
    let lines = try trace("secret init --vault new/below/V --key-file other/K", of: "mkdir,mkdirat")
    #expect(lines.count >= 3, "\(lines)")
    #expect(
      lines.allSatisfy {
        $0.range(of: #"^mkdirat\(\d+, "[^/"]+", 0700\) += 0"#, options: .regularExpression) != nil
      },
      "\(lines)")
  }

  // MARK: Barriers

  @Test func aNewFileHasNoNameBeforeItIsOnTheDisk() throws {
    let calls = "openat,write,pwrite64,fchmod,fsync,linkat,rename,renameat,renameat2,unlink,unlinkat,flock"
    let lines = try trace("secret inject -i t -o out", of: calls, from: "O_TMPFILE")
    let created = try index(lines, #"^openat\(\d+, "\.", O_RDWR\|.*O_CLOEXEC\|O_TMPFILE, 0600\)"#)
    let mode = try index(lines, #"^fchmod\(\d+, 0600\)"#)
    let written = try index(lines, #"^pwrite64\("#)
    let synced = try index(lines, #"^fsync\(\d+\) += 0"#)
    let linked = try index(lines, #"^linkat\(.*"out".* = 0"#)
    let rest = Array(lines[(linked + 1)...])
    let directory = try index(rest, #"^fsync\(\d+\) += 0"#)
    #expect(created < mode && mode < written && written < synced && synced < linked)
    #expect(!rest[...directory].contains { $0.hasPrefix("write") })
    #expect(!lines.contains { $0.contains("unfinished") && !$0.hasPrefix("---") })
  }

  @Test func aNewVaultAndItsKeyAreOnTheDiskBeforeInitEnds() throws {
    let lines = try trace(
      "secret init --vault W --key-file K", of: "fsync,fdatasync,linkat,rename,renameat2,write")
    let key = try index(lines, #"^linkat\(.*"K".* = 0"#)
    let vault = try index(lines, #"^renameat2\(.*"W", RENAME_NOREPLACE\) += 0"#)
    #expect(key < vault)
    #expect(
      lines[..<key].contains { $0.hasPrefix("fsync") }
        && lines[key..<vault].count { $0.hasPrefix("fsync") } >= 2)
    let said = try index(lines, #"^write\(2, "Created the vault"#)
    #expect(lines[vault..<said].contains { $0.hasPrefix("fsync") })
  }

  @Test func interruptedBarriersAreRepeated() throws {
    // Each fsync is interrupted twice.
    for command in [
      "secret inject -i t -o out", "secret inject -i t -o out", "secret rekey", "secret key add --key-file K",
    ] {
      for number in 1...4 {
        try fail(
          "fsync:error=EINTR:when=\(number)..\(number + 1)",
          command.replacingOccurrences(of: " K", with: " K\(number)"), status: 0)
      }
    }
    for number in 1...2 {
      try fail("fdatasync:error=EINTR:when=\(number)", "sh -c 'printf x | secret set b'", status: 0)
    }
    #expect(try files().contains { $0.contains("unfinished") } == false)
  }

  // MARK: What is left

  @Test func aKilledWriterOfANewFileLeavesNothing() throws {
    for call in ["pwrite64", "fsync", "linkat"] {
      try fail("\(call):signal=KILL:when=1", "secret inject -i t -o out", status: 137)
      #expect(try files() == ["t"], "\(call)")
    }
  }

  /// Without unnamed files, as on some network file systems: they cannot be given a name here.
  @Test func aFileSystemWithoutUnnamedFilesIsWrittenToAndCleanedUp() throws {
    try fail("linkat:error=ENOENT", "secret inject -i t -o out", status: 0)
    #expect(try files() == ["out", "t"])
    try fail("linkat:error=EOPNOTSUPP", "secret inject -i t -o out", status: 0)
    try fail("linkat:error=ENOENT", "secret export -o out", status: 73)
    #expect(try files() == ["out", "t"])
    // Killed before the rename: the named file stays, and the next run removes it.
    try perform(
      "strace -f -o trace -e inject=linkat:error=ENOENT -e inject=renameat:signal=KILL:when=1 "
        + "secret inject -i t -o out", status: 137)
    #expect(try files().contains { $0.hasPrefix(".out.") && $0.hasSuffix(".unfinished") })
    try perform("secret inject -i t -o out")
    #expect(try files() == ["out", "t"])
    // Of a flag of rename(2) too.
    try perform(
      "rm out; strace -f -o trace -e inject=linkat:error=ENOSYS:when=1..2 -e inject=renameat2:error=EINVAL "
        + "secret export -o out")
    #expect(try files() == ["out", "t"])
  }

  @Test func aKilledReplacementKeepsTheOldFileAndTheNextOneCleansUp() throws {
    try perform("echo old > out")
    for call in ["linkat:signal=KILL:when=2", "renameat:signal=KILL:when=1"] {
      try fail(call, "secret inject -i t -o out", status: 137)
      #expect(try perform("test \"$(cat out)\" = old") == "")
    }
    #expect(try files().count { $0.hasSuffix(".unfinished") } == 1)
    try perform("secret inject -i t -o out")
    #expect(try files() == ["out", "t"])
  }

  @Test func whatWasWrittenIsSaidWhenTheLastBarrierFails() throws {
    let said = try fail("fsync:error=EIO:when=2", "secret inject -i t -o out", status: 74)
    #expect(said.contains("The file out was written, but may be lost if the power fails now"))
    #expect(try sandbox.shell("cat out").outputText == "value: \(Self.canary)\n")
    // A file that did not exist before is taken back.
    let refused = try fail("fsync:error=EIO:when=2", "secret export -o new", status: 74)
    #expect(refused.contains("The file new cannot be written"))
    #expect(try files() == ["out", "t"])
    let left = try fail(
      "fsync:error=EIO:when=2 -e inject=unlinkat:error=EIO", "secret export -o new", status: 74)
    #expect(left.contains("The file new was written, but"))
  }

  /// The vault and its key file: both, or neither, or the message says which one is left.
  @Test func initThatFailsLeavesBothOrNeither() throws {
    let barriers = try trace("secret init --vault V --key-file K", of: "fsync").count
    var failures = 0
    for number in 1...barriers {
      for error in ["EIO", "EACCES"] {
        // Another path each time, so that no record of a known vault is about it.
        let (vault, key) = ("V\(number)\(error)", "K\(number)\(error)")
        let result = try sandbox.shell(
          "strace -f -o trace -e inject=fsync:error=\(error):when=\(number) secret init --vault \(vault) --key-file \(key)"
        )
        let names = try files().filter { [key, vault].contains($0) }
        if result.status == 0 || result.errorText.contains("was created, but could not be recorded") {
          #expect(names == [key, vault])
          try perform("COFFER_KEY_FILE=\(key) secret --vault \(vault) verify > /dev/null")
        } else {
          failures += 1
          #expect(names == [], "\(number) \(error): \(result.errorText)")
        }
      }
    }
    #expect(failures >= 2)
    // The vault cannot be taken back either.
    let barrier = try trace("secret init --vault W --key-file L", of: "fsync,renameat2")
    let last = try index(barrier, "renameat2")
    let said = try fail(
      "fsync:error=EIO:when=\(last + 1) -e inject=unlinkat:error=EIO", "secret init --vault X --key-file M",
      status: 74)
    #expect(said.contains("The key file") && said.contains("is kept, because it opens the vault"), "\(said)")
    try perform("COFFER_KEY_FILE=M secret --vault X verify > /dev/null")
  }

  @Test func keyAddThatFailsNeverLeavesASlotWithoutItsKey() throws {
    let lines = try trace("secret key add --key-file K", of: "fsync,renameat,renameat2")
    let rename = try index(lines, #"^renameat\(.*default\.vault"#)
    let barriers = lines.filter { $0.hasPrefix("fsync") }.count
    let last = lines[..<rename].count { $0.hasPrefix("fsync") } + 1
    for number in 1...barriers {
      let key = "K\(number)"
      let result = try sandbox.shell(
        "strace -f -o trace -e inject=fsync:error=EIO:when=\(number) secret key add --key-file \(key)")
      let isThere = try files().contains(key)
      let opens = try sandbox.shell("XDG_CONFIG_HOME=none COFFER_KEY_FILE=\(key) secret get a").status == 0
      #expect(isThere == opens, "\(number): \(result.errorText)")
      if number == last {
        #expect(
          result.status == 74 && isThere && result.errorText.contains("\(key) is kept"), "\(result.errorText)"
        )
      }
    }
  }

  @Test func editEndsAfterAWaitThatWasInterrupted() throws {
    sandbox.environment["EDITOR"] = "true"
    try fail("wait4:error=EINTR:when=1", "secret edit a", status: 0)
  }

  // MARK: The environment

  /// Root can read the environment of every process: the child of `run --redact` is one of root's.
  ///
  /// The relay of `run --redact` is executed anew. The parent of an editor is the process that was given the variables.
  @Test(arguments: [
    "secret run --redact --set A=a -- sh -c 'cat /proc/$PPID/environ /proc/self/environ | base64 -w 0'",
    "printf '#!/bin/sh\ncat /proc/$PPID/environ /proc/self/environ >all' >e; chmod +x e; EDITOR=./e secret edit a 2>said; base64 -w 0 all",
  ])
  func theEnvironmentOfTheToolDoesNotHoldTheKey(_ command: String) throws {
    let key = try sandbox.shell("cat ../home/config/coffer/key").outputText.trimmingCharacters(in: .newlines)
    sandbox.environment["COFFER_KEY"] = key
    sandbox.environment["COFFER_PASSPHRASE_COMMAND"] = "echo command-5af01"
    sandbox.environment["COFFER_PASSPHRASE_FILE"] = "/file-5af02"
    sandbox.environment["COFFER_PASSPHRASE_FD"] = "97531"
    // A variable that begins as one of them does is another's.
    sandbox.environment["COFFER_KEYS"] = "kept-5af03"
    sandbox.environment["XDG_CONFIG_HOME"] = "\(sandbox.directory)/none"
    let result = try sandbox.shell(command)
    let data = try #require(Data(base64Encoded: result.output), "\(result.outputText)")
    if geteuid() == 0 {
      // Both were read, and both have the other variables.
      for variable in ["XDG_STATE_HOME=", "COFFER_KEYS=kept-5af03"] {
        #expect(data.split(separator: 0).count { $0.starts(with: Data(variable.utf8)) } == 2, "\(variable)")
      }
    }
    for text in ["coffer-key-v1", String(key.suffix(20)), "command-5af01", "/file-5af02", "97531"] {
      #expect(data.range(of: Data(text.utf8)) == nil, "\(text)")
    }
  }
}
