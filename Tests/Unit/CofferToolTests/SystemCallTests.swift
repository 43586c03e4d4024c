import CofferTestSupport
import Foundation
import Testing

/// The system calls of the built tool, as strace shows them, and what is left when one of them fails or is the last.
///
/// Some flags and barriers have no effect that another test could see. They are checked here.
@Suite(.needs("strace"), .timeLimit(.minutes(30))) struct SystemCallTests {
  private let tool: TracedTool
  private var sandbox: Sandbox { tool.sandbox }

  init() throws { tool = try TracedTool() }

  // MARK: Flags

  @Test func everyDescriptorIsClosedOnExecution() throws {
    try tool.perform("umask 077; echo passphrase > p")
    for command in [
      "secret get a", "secret inject -i t -o out", "secret set b --from-file t", "secret rekey",
      "secret key add --key-file K", "secret doctor", "secret export -o e",
      "env COFFER_PASSPHRASE_FILE=p secret init --vault P --passphrase",
    ] {
      let calls = "open,openat,openat2,dup,pipe,pipe2,memfd_create,inotify_init1,socket,fcntl"
      // glibc and a sanitizer open these by themselves.
      for line in try tool.trace(command, of: calls)
      where !line.contains("= -1") && !line.contains("/proc/self/") && !line.contains("/gconv/") {
        // The flags are in the memory of a process that only root's strace may read.
        if geteuid() != 0 && line.hasPrefix("openat2(AT_FDCWD, 0x") { continue }
        if line.hasPrefix("fcntl") {
          #expect(!line.contains("F_DUPFD,"), "\(command): \(line)")
        } else {
          #expect(line.contains("CLOEXEC"), "\(command): \(line)")
        }
      }
    }
  }

  @Test(.readsNames) func theVaultIsOpenedByItsNameAloneAndWithoutWaiting() throws {
    let lines = try tool.trace("secret get a", of: "openat,openat2")
    let flags = "O_RDWR|O_NOCTTY|O_NONBLOCK|O_NOFOLLOW|O_CLOEXEC"
    let vault = lines.filter { $0.contains("\"default.vault\"") && !$0.contains("O_PATH") }
    #expect(!vault.isEmpty && vault.allSatisfy { $0.contains(flags) && !$0.contains("AT_FDCWD") }, "\(vault)")
    let walked = lines.filter { $0.contains("O_PATH") }
    #expect(!walked.isEmpty && walked.allSatisfy { $0.contains("O_CLOEXEC") })
    // Either the path is walked one name at a time, or no link is allowed in the whole path.
    #expect(
      walked.allSatisfy {
        $0.contains("RESOLVE_NO_MAGICLINKS|RESOLVE_NO_SYMLINKS")
          || $0.contains("O_NOFOLLOW")
            && $0.range(of: #"openat\([A-Z0-9_]+, "(/|[^/"]+)","#, options: .regularExpression) != nil
      }, "\(walked)")
    let key = lines.filter { $0.contains("/coffer/key\"") }
    #expect(
      !key.isEmpty && key.allSatisfy { $0.contains("O_RDONLY|O_NOCTTY|O_NONBLOCK|O_CLOEXEC") }, "\(key)")
  }

  @Test(.readsNames) func theProjectsFileIsSearchedOnlyWhereItMayBe() throws {
    try tool.perform("mkdir -p tree/.git tree/a/b plain/a && touch tree/.git/HEAD")
    func searched(_ command: String, in directory: String = ".") throws -> [String] {
      try tool.trace("sh -c 'cd \(directory) && exec \(command)'", of: "openat,openat2")
        .filter { $0.contains("/.coffer.toml\"") }.map { String($0.split(separator: "\"")[1]) }
    }
    let work = sandbox.workingDirectory
    #expect(try searched("secret get a", in: "plain/a") == ["\(work)/plain/a/.coffer.toml"])
    let all = ["/a/b", "/a", ""].map { "\(work)/tree\($0)/.coffer.toml" }
    #expect(try searched("secret get a", in: "tree/a/b").sorted() == all.sorted())
    for command in ["secret --backend vault get a", "env COFFER_BACKEND=vault secret get a"] {
      #expect(try searched(command, in: "tree/a/b").isEmpty, "\(command)")
    }
  }

  @Test(.readsNames) func directoriesAreCreatedInTheDirectoriesThatWereChecked() throws {
    let lines = try tool.trace("secret init --vault new/below/V --key-file other/K", of: "mkdir,mkdirat")
    #expect(lines.count >= 3, "\(lines)")
    #expect(
      lines.allSatisfy {
        $0.range(of: #"^mkdirat\(\d+, "[^/"]+", 0700\) += 0"#, options: .regularExpression) != nil
      },
      "\(lines)")
  }

  // MARK: Barriers

  @Test(.readsNames) func aNewFileHasNoNameBeforeItIsOnTheDisk() throws {
    let calls = "openat,write,pwrite64,fchmod,fsync,linkat,rename,renameat,renameat2,unlink,unlinkat,flock"
    let lines = try tool.trace("secret inject -i t -o out", of: calls, from: "O_TMPFILE")
    let created = try tool.index(lines, #"^openat\(\d+, "\.", O_RDWR\|.*O_CLOEXEC\|O_TMPFILE, 0600\)"#)
    let mode = try tool.index(lines, #"^fchmod\(\d+, 0600\)"#)
    let locked = try tool.index(lines, #"^flock\(\d+, LOCK_EX\|LOCK_NB\) += 0"#)
    let written = try tool.index(lines, #"^pwrite64\("#)
    let synced = try tool.index(lines, #"^fsync\(\d+\) += 0"#)
    let linked = try tool.index(lines, #"^linkat\(.*"out".* = 0"#)
    let rest = Array(lines[(linked + 1)...])
    let directory = try tool.index(rest, #"^fsync\(\d+\) += 0"#)
    #expect(created < mode && mode < locked && locked < written && written < synced && synced < linked)
    #expect(!rest[...directory].contains { $0.hasPrefix("write") })
    #expect(!lines.contains { $0.contains("unfinished") && !$0.hasPrefix("---") })
  }

  @Test(.readsNames) func whatAnExistingFileRefusesNeverHasAName() throws {
    try tool.perform("echo old > out")
    let lines = try tool.trace("sh -c 'secret export -o out; test $? = 73'", of: "openat,linkat,renameat2")
    #expect(lines.contains { $0.contains("O_TMPFILE") } && !lines.contains { $0.contains("unfinished") })
    #expect(try sandbox.shell("cat out").outputText == "old\n")
  }

  @Test(.readsNames) func aNewVaultAndItsKeyAreOnTheDiskBeforeInitEnds() throws {
    let lines = try tool.trace(
      "secret init --vault W --key-file K", of: "fsync,fdatasync,linkat,rename,renameat2,write")
    let key = try tool.index(lines, #"^linkat\(.*"K".* = 0"#)
    let vault = try tool.index(lines, #"^renameat2\(.*"W", RENAME_NOREPLACE\) += 0"#)
    #expect(key < vault)
    #expect(
      lines[..<key].contains { $0.hasPrefix("fsync") }
        && lines[key..<vault].count { $0.hasPrefix("fsync") } >= 2)
    let said = try tool.index(lines, #"^write\(2, "Created the vault"#)
    #expect(lines[vault..<said].contains { $0.hasPrefix("fsync") })
  }

  @Test(.readsNames) func aNewDirectoryIsOnTheDiskBeforeItIsUsed() throws {
    let lines = try tool.trace("secret init --vault d/e/W --key-file f/K", of: "mkdirat,fsync")
    for name in ["d", "e", "f"] {
      let made = try tool.index(lines, "^mkdirat\\(.*\"\(name)\", 0700\\) += 0")
      #expect(lines.dropFirst(made + 1).first?.hasPrefix("fsync(") == true, "\(lines)")
    }
  }

  @Test func interruptedBarriersAreRepeated() throws {
    // Each fsync is interrupted twice.
    for command in [
      "secret inject -i t -o out", "secret inject -i t -o out", "secret rekey", "secret key add --key-file K",
    ] {
      for number in 1...4 {
        try tool.fail(
          "fsync:error=EINTR:when=\(number)..\(number + 1)",
          command.replacingOccurrences(of: " K", with: " K\(number)"), status: 0)
      }
    }
    for number in 1...2 {
      try tool.fail("fdatasync:error=EINTR:when=\(number)", "sh -c 'printf x | secret set b'", status: 0)
    }
    #expect(try tool.files().contains { $0.contains("unfinished") } == false)
  }

  @Test func interruptedAndShortWritesAreContinued() throws {
    for fault in [
      "pwrite64:error=EINTR:when=1..2", "flock:error=EINTR:when=1..3",
      "linkat:error=ENOENT -e inject=flock:error=EINTR:when=2..3",
    ] {
      try tool.fail(fault, "secret inject -i t -o out", status: 0)
      #expect(try sandbox.shell("cat out").outputText == "value: \(tool.canary)\n", "\(fault)")
    }
    // The call claims to have written the first byte, and has not. The other bytes are in their places.
    try tool.fail("pwrite64:retval=1:when=1", "secret inject -i t -o out", status: 0)
    #expect(try sandbox.shell("tr '\\0' - < out").outputText == "-alue: \(tool.canary)\n")
    let said = try tool.fail("pwrite64:retval=0", "secret inject -i t -o out", status: 74)
    #expect(said.contains("The file out cannot be written"))
    #expect(try tool.files() == ["out", "t"])
  }

  // MARK: What is left

  @Test func aKilledWriterOfANewFileLeavesNothing() throws {
    for call in ["pwrite64", "fsync", "linkat"] {
      try tool.fail("\(call):signal=KILL:when=1", "secret inject -i t -o out", status: 137)
      #expect(try tool.files() == ["t"], "\(call)")
    }
  }

  /// Some network file systems have no unnamed files. Here they exist, but cannot be given a name.
  @Test func aFileSystemWithoutUnnamedFilesIsWrittenToAndCleanedUp() throws {
    try tool.fail("linkat:error=ENOENT", "secret inject -i t -o out", status: 0)
    #expect(try tool.files() == ["out", "t"])
    try tool.fail("linkat:error=EOPNOTSUPP", "secret inject -i t -o out", status: 0)
    try tool.fail("linkat:error=ENOENT", "secret export -o out", status: 73)
    #expect(try tool.files() == ["out", "t"])
    // Killed before the rename: the named file stays, and the next run removes it.
    try tool.perform(
      "strace -f -o trace -e inject=linkat:error=ENOENT -e inject=renameat:signal=KILL:when=1 "
        + "secret inject -i t -o out", status: 137)
    #expect(try tool.files().contains { $0.hasPrefix(".out.") && $0.hasSuffix(".unfinished") })
    try tool.perform("secret inject -i t -o out")
    #expect(try tool.files() == ["out", "t"])
    // The same without the flag of rename(2) that protects an existing file.
    try tool.perform(
      "rm out; strace -f -o trace -e inject=linkat:error=ENOSYS:when=1..2 -e inject=renameat2:error=EINVAL "
        + "secret export -o out")
    #expect(try tool.files() == ["out", "t"])
  }

  /// As on exFAT: an empty file takes the name first, so that no existing file is replaced.
  @Test func aFileSystemWithoutLinksAndWithoutTheFlagOfRenameIsWrittenTo() throws {
    let faults = "linkat:error=EPERM -e inject=renameat2:error=EINVAL"
    try tool.fail(faults, "secret export -o out", status: 0)
    #expect(try sandbox.shell("cat out").outputText.contains(tool.canary))
    try tool.perform("echo other > out")
    try tool.fail(faults, "secret export -o out", status: 73)
    #expect(try sandbox.shell("cat out").outputText == "other\n")
    try tool.perform("rm out")
    try tool.fail("\(faults) -e inject=renameat:error=EIO", "secret export -o out", status: 74)
    #expect(try tool.files() == ["t"])
    try tool.fail(faults, "secret init --vault V --key-file K", status: 0)
    try tool.perform("COFFER_KEY_FILE=K secret --vault V verify")
    #expect(try tool.files() == ["K", "V", "t"])
  }

  @Test func aKilledReplacementKeepsTheOldFileAndTheNextOneCleansUp() throws {
    try tool.perform("echo old > out")
    for call in ["linkat:signal=KILL:when=2", "renameat:signal=KILL:when=1"] {
      try tool.fail(call, "secret inject -i t -o out", status: 137)
      #expect(try tool.perform("test \"$(cat out)\" = old") == "")
    }
    // Each process removes what the one before left, under a name that nobody can foresee.
    var unfinished: Set<String> = []
    for _ in 1...3 {
      try tool.fail("renameat:signal=KILL:when=1", "secret inject -i t -o out", status: 137)
      let names = try tool.files().filter { $0.hasSuffix(".unfinished") }
      #expect(names.count == 1)
      unfinished.formUnion(names)
    }
    #expect(unfinished.count == 3)
    try tool.perform("secret inject -i t -o out")
    #expect(try tool.files() == ["out", "t"])
  }

  /// Between two calls a replacement has a temporary name. A signal waits until these calls are over.
  @Test func aSignalWaitsUntilTheFileHasItsName() throws {
    try tool.perform("echo old > out")
    try tool.fail("linkat:signal=TERM:when=2", "secret inject -i t -o out", status: 143)
    #expect(try sandbox.shell("cat out").outputText == "value: \(tool.canary)\n")
    #expect(try tool.files() == ["out", "t"])
  }

  /// Without a lock, another process may have taken the file for one that a killed process left.
  @Test(.readsNames) func aNamedFileThatCannotBeLockedIsNotUsed() throws {
    try tool.fail(
      "linkat:error=ENOENT -e inject=flock:error=EAGAIN:when=2", "secret inject -i t -o out", status: 0)
    #expect(try sandbox.shell("cat out").outputText == "value: \(tool.canary)\n")
    let created = try String(contentsOfFile: "\(sandbox.workingDirectory)/trace", encoding: .utf8)
      .split(separator: "\n").filter { $0.contains("unfinished\"") && $0.contains("O_EXCL") }
    #expect(created.count > 1, "\(created)")
  }

  /// The process stops between the creation of the file and its lock.
  @Test func aNamedFileThatAnotherProcessRemovedBeforeItsLockIsNotUsed() throws {
    try tool.perform(
      """
      strace -f -o trace -e inject=linkat:error=ENOENT -e inject=fchmod:signal=STOP:when=2 \
        secret inject -i t -o out &
      until ls .out.*.unfinished 2> /dev/null && grep -q 'stopped by SIGSTOP' trace; do sleep 0.01; done
      rm .out.*.unfinished
      kill -CONT "$(pgrep -P $!)"
      wait $!
      """)
    #expect(try sandbox.shell("cat out").outputText == "value: \(tool.canary)\n")
    #expect(try tool.files() == ["out", "t"])
  }

  @Test func whatWasWrittenIsSaidWhenTheLastBarrierFails() throws {
    let said = try tool.fail("fsync:error=EIO:when=2", "secret inject -i t -o out", status: 74)
    #expect(said.contains("The file out was written, but may be lost if the power fails now"))
    #expect(try sandbox.shell("cat out").outputText == "value: \(tool.canary)\n")
    // A file that did not exist before is removed again.
    let refused = try tool.fail("fsync:error=EIO:when=2", "secret export -o new", status: 74)
    #expect(refused.contains("The file new cannot be written"))
    #expect(try tool.files() == ["out", "t"])
    let left = try tool.fail(
      "fsync:error=EIO:when=2 -e inject=unlinkat:error=EIO", "secret export -o new", status: 74)
    #expect(left.contains("The file new was written, but"))
  }

  @Test func aKeyFileIsKeptWithAVaultThatCannotBeTakenBack() throws {
    let barrier = try tool.trace("secret init --vault W --key-file L", of: "fsync,renameat2")
    let last = try tool.index(barrier, "renameat2")
    let said = try tool.fail(
      "fsync:error=EIO:when=\(last + 1) -e inject=unlinkat:error=EIO", "secret init --vault X --key-file M",
      status: 74)
    #expect(said.contains("The key file") && said.contains("is kept, because it opens the vault"), "\(said)")
    try tool.perform("COFFER_KEY_FILE=M secret --vault X verify > /dev/null")
  }

  @Test(.readsNames) func keyAddThatFailsNeverLeavesASlotWithoutItsKey() throws {
    let lines = try tool.trace("secret key add --key-file K", of: "fsync,renameat,renameat2")
    let rename = try tool.index(lines, #"^renameat\(.*default\.vault"#)
    let barriers = lines.filter { $0.hasPrefix("fsync") }.count
    let last = lines[..<rename].count { $0.hasPrefix("fsync") } + 1
    for number in 1...barriers {
      let key = "K\(number)"
      let result = try sandbox.shell(
        "strace -f -o trace -e inject=fsync:error=EIO:when=\(number) secret key add --key-file \(key)")
      let isThere = try tool.files().contains(key)
      let opens = try sandbox.shell("XDG_CONFIG_HOME=none COFFER_KEY_FILE=\(key) secret get a").status == 0
      #expect(isThere == opens, "\(number): \(result.errorText)")
      if number == last {
        #expect(
          result.status == 74 && isThere && result.errorText.contains("\(key) is kept"), "\(result.errorText)"
        )
        #expect(result.errorText.contains("The change is in the vault at"), "\(result.errorText)")
      }
    }
  }

  /// If the vault cannot be read after a failure, it may have the slot.
  @Test(.readsNames) func keyAddKeepsTheKeyFileIfNobodyKnowsWhetherItsSlotIsThere() throws {
    let lines = try tool.trace("secret key add --key-file K", of: "fsync,pread64,renameat")
    let rename = try tool.index(lines, #"^renameat\(.*default\.vault"#)
    let barrier = lines[..<rename].count { $0.hasPrefix("fsync") } + 1
    let reads = lines[..<rename].count { $0.hasPrefix("pread64") }
    let said = try tool.fail(
      "fsync:error=EIO:when=\(barrier) -e inject=pread64:error=EIO:when=\(reads + 1)+",
      "secret key add --key-file L", status: 74)
    #expect(said.contains("L is kept, because the vault") && said.contains("may need it"), "\(said)")
    #expect(try tool.files().contains("L"))
  }

  @Test(.readsNames) func initWithoutAKeyFileSaysWhetherTheVaultIsThere() throws {
    sandbox.environment["COFFER_KEY"] = try sandbox.shell("cat ../home/config/coffer/key").outputText
      .trimmingCharacters(in: .newlines)
    let lines = try tool.trace("secret init --vault W", of: "fsync,renameat2")
    let barriers = try tool.index(lines, #"^renameat2\(.*"W", RENAME_NOREPLACE\) += 0"#)
    for (number, isThere) in [(barriers, false), (barriers + 1, true)] {
      let said = try tool.fail(
        "fsync:error=EIO:when=\(number) -e inject=unlinkat:error=EIO", "secret init --vault V\(number)",
        status: 74)
      #expect(said.contains("was created, but may be lost if the power fails now") == isThere, "\(said)")
      #expect(try tool.files().contains("V\(number)") == isThere)
    }
  }

  /// The value, the label and the history change together or not at all.
  @Test func aPurgeThatFailsChangesNothing() throws {
    let state = "secret get p; secret info p; secret history p"
    try tool.perform("printf 1 | secret set p --label old && printf 2 | secret set p")
    let before = try sandbox.shell(state).outputText
    for fault in ["renameat:error=ENOSPC", "fsync:error=EIO:when=1"] {
      try tool.fail(fault, "sh -c 'printf 3 | secret set p --no-history --label new'", status: 74)
      #expect(try sandbox.shell(state).outputText == before, "\(fault)")
    }
    try tool.perform("printf 3 | secret set p --no-history --label new")
    let after = try sandbox.shell("secret get p; secret info p; secret history p").outputText
    #expect(after.hasPrefix("3") && after.contains("new") && !after.contains("old"), "\(after)")
  }

  @Test func editEndsAfterAWaitThatWasInterrupted() throws {
    sandbox.environment["EDITOR"] = "true"
    try tool.fail("wait4:error=EINTR:when=1", "secret edit a", status: 0)
  }
}
