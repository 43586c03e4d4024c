import CofferCore
import CofferSystem
import CofferTestSupport
import Foundation
import Testing

@Suite(.timeLimit(.minutes(30))) struct SpawnTests {
  private func run(
    _ script: String,
    environment: [String: String] = ["PATH": "/usr/bin:/bin"],
    standardError: CapturedProcess.StandardError = .captured,
    limit: Int = 1 << 20,
    timeout: Duration? = nil
  ) throws(SecretError) -> (ProcessEnd, String) {
    let process = try CapturedProcess.run(
      ["/bin/sh", "-c", script], named: "The script", environment: environment,
      standardError: standardError, limit: limit, timeout: timeout)
    return (process.end, try process.output.string())
  }

  private func start(_ spawn: Spawn, _ arguments: [String]) throws -> ProcessEnd? {
    try ProcessEnd(of: spawn.start(arguments))
  }

  @Test func theEndIsTheStatusOrTheSignal() throws {
    #expect(try run("exit 3").0 == .status(3))
    #expect(try run("kill -9 $$").0 == .signal(9))
    #expect(try run("kill -9 $$", timeout: .seconds(60)).0 == .signal(9))
  }

  @Test func theOutputIsCapturedAndTheInputIsEmpty() throws {
    #expect(try run("cat; echo out; echo err >&2").1 == "out\nerr\n")
    #expect(try run("echo out; echo hidden >&2", standardError: .inherited).1 == "out\n")
  }

  @Test func theEnvironmentIsTheGivenOne() throws {
    #expect(try run("env", environment: ["PATH": "/usr/bin:/bin", "A": "b=c"]).1.contains("A=b=c\n"))
    setenv("COFFER_TEST_INHERITED", "yes", 1)
    #expect(try !run("env").1.contains("COFFER_TEST_INHERITED"))
    #expect(try start(Spawn(), ["sh", "-c", "test \"$COFFER_TEST_INHERITED\" = yes"]) == .status(0))
  }

  @Test(arguments: ["/nonexistent/program", "a-program-that-does-not-exist"])
  func aMissingProgramIsUnavailable(program: String) {
    let error = thrown { () throws(SecretError) in
      _ = try CapturedProcess.run(
        [program], named: "The program x", environment: [:], standardError: .captured, limit: 1)
    }
    #expect(error?.code == .unavailable && error?.reason == "The program x was not found.")
    #expect(throws: FileSystemError(ENOENT)) { try Spawn().start([program]) }
  }

  @Test func tooMuchOutputEndsTheProgram() {
    for timeout in [nil, Duration.seconds(60)] {
      let error = thrown { () throws(SecretError) in _ = try run("exec yes", limit: 1000, timeout: timeout) }
      #expect(error?.code == .tooLarge)
    }
  }

  @Test(arguments: [
    "sleep 600", "sleep 600 & echo early", "exec >&- 2>&-; sleep 600", "trap '' TERM; sleep 600",
  ])
  func aTimeoutKillsTheProgramAndWhatItStarted(script: String) async throws {
    let directory = try TemporaryDirectory()
    let error = thrown { () throws(SecretError) in
      _ = try run("echo $$ > \(directory.file("pid")); \(script)", timeout: .seconds(1))
    }
    #expect(error?.code == .timedOut)
    let group = try #require(
      pid_t(try directory.text(of: "pid").trimmingCharacters(in: .whitespacesAndNewlines)))
    try await eventually("a process of the group was left") { try processes(ofGroup: group).isEmpty }
  }

  @Test func descriptorsAreMappedAndOthersAreClosed() throws {
    let (reading, writing) = try Descriptor.pipe()
    // A number that the shell does not use itself.
    let other = try Descriptor(opened: fcntl(reading.number, F_DUPFD_CLOEXEC, 500))
    var spawn = Spawn()
    spawn.descriptors = [(7, .descriptor(writing.number)), (0, .nullDevice)]
    let script = "echo mapped >&7 && test ! -s /dev/stdin && test ! -e /proc/self/fd/\(other.number)"
    try #require(try start(spawn, ["sh", "-c", script]) == .status(0))
    var buffer = [UInt8](repeating: 0, count: 10)
    #expect(read(reading.number, &buffer, 10) == 7)
    // The null device can be written to as well.
    spawn.descriptors = [(1, .nullDevice)]
    #expect(try start(spawn, ["sh", "-c", "echo out"]) == .status(0))
    withExtendedLifetime((reading, writing, other)) {}
  }

  @Test func signalsAreBlockedAndRestoredAsAsked() throws {
    func hexadecimal(_ field: String, _ spawn: Spawn) throws -> UInt64 {
      let (reading, writing) = try Descriptor.pipe()
      var spawn = spawn
      spawn.descriptors = [(1, .descriptor(writing.number))]
      let end = try start(spawn, ["sed", "-n", "s/^\(field):[[:space:]]*//p", "/proc/self/status"])
      #expect(end == .status(0))
      var buffer = [UInt8](repeating: 0, count: 100)
      let count = read(reading.number, &buffer, 100)
      withExtendedLifetime((reading, writing)) {}
      let text = String(decoding: buffer[..<max(count, 0)], as: UTF8.self)
      return try #require(UInt64(text.trimmingCharacters(in: .whitespacesAndNewlines), radix: 16))
    }
    var spawn = Spawn()
    #expect(try hexadecimal("SigBlk", spawn) == 0)
    sigaddset(&spawn.blockedSignals, SIGUSR1)
    #expect(try hexadecimal("SigBlk", spawn) == 1 << UInt64(SIGUSR1 - 1))

    signal(SIGUSR2, SIG_IGN)
    defer { signal(SIGUSR2, SIG_DFL) }
    let bit = UInt64(1) << UInt64(SIGUSR2 - 1)
    #expect(try hexadecimal("SigIgn", Spawn()) & bit == bit)
    spawn.defaultSignals = [SIGUSR2]
    #expect(try hexadecimal("SigIgn", spawn) & bit == 0)
    spawn.defaultSignals = Spawn.allSignals
    #expect(try hexadecimal("SigIgn", spawn) & bit == 0)
  }

  @Test func aGroupLeaderHasAGroupOfItsOwn() throws {
    // Field 5 of /proc/PID/stat is the process group.
    let isLeader = "test $(cut -d ' ' -f 5 /proc/$$/stat) = $$"
    var spawn = Spawn()
    #expect(try start(spawn, ["sh", "-c", isLeader]) == .status(1))
    spawn.isGroupLeader = true
    #expect(try start(spawn, ["sh", "-c", isLeader]) == .status(0))
  }

  @Test func aSessionLeaderHasASessionOfItsOwn() throws {
    // Field 6 of /proc/PID/stat is the session.
    let isLeader = "test $(cut -d ' ' -f 6 /proc/$$/stat) = $$"
    var spawn = Spawn()
    #expect(try start(spawn, ["sh", "-c", isLeader]) == .status(1))
    spawn.isSessionLeader = true
    #expect(try start(spawn, ["sh", "-c", isLeader]) == .status(0))
  }

  @Test func aChangeOfAProcessIsAskedForWithoutWaiting() async throws {
    let process = try Spawn().start(["sleep", "60"])
    #expect(ProcessEnd.changed(process) == nil && ProcessEnd.changed(process, WUNTRACED) == nil)
    kill(process, SIGSTOP)
    try await eventually("the process did not stop") {
      try String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8).contains(") T ")
    }
    #expect(ProcessEnd.changed(process) == nil)
    // The kernel's status of a stopped process: 0x7F in the low byte, and the signal in the next one.
    #expect(ProcessEnd.changed(process, WUNTRACED) == SIGSTOP << 8 | 0x7F)
    #expect(ProcessEnd.changed(process, WUNTRACED) == nil)
    kill(process, SIGKILL)
    try await eventually("the process did not end") { ProcessEnd.changed(process) == SIGKILL }
    #expect(ProcessEnd.changed(process) == nil)
  }

  @Test func aFileThatIsNoProgramCannotBeRun() throws {
    let directory = try TemporaryDirectory()
    let file = try directory.write("text", to: "file")
    let error = thrown { () throws(SecretError) in
      _ = try CapturedProcess.run(
        [file], named: "The program x", environment: [:], standardError: .captured, limit: 1)
    }
    #expect(error?.code == .io && error?.reason == "The program x cannot be run: Permission denied.")
  }

  @Test func aDeadlineEndsTheWaitForAProcessAndNotTheProcess() throws {
    let process = try Spawn().start(["sleep", "600"])
    #expect(try ProcessEnd(of: process, until: .now) == nil)
    #expect(try ProcessEnd(of: process, until: .now + .milliseconds(20)) == nil)
    // The `errno` of another call has no effect.
    errno = EINTR
    #expect(ProcessEnd.changed(process) == nil)
    kill(process, SIGKILL)
    #expect(try ProcessEnd(of: process, until: .now + .seconds(600)) == .signal(SIGKILL))
    // The process is no longer a child.
    #expect(throws: FileSystemError(ECHILD)) { try ProcessEnd(of: process) }
    #expect(throws: FileSystemError(ECHILD)) { try ProcessEnd(of: process, until: .now + .seconds(600)) }
    #expect(ProcessEnd.changed(process) == nil)
  }

  @Test func aProcessThatEndsBeforeTheDeadlineHasItsStatus() throws {
    let process = try Spawn().start(["sh", "-c", "sleep 0.1; exit 3"])
    #expect(try ProcessEnd(of: process, until: .now + .seconds(600)) == .status(3))
  }

  @Test func aProgramThatIsEndedIsNoZombie() async {
    await #expect(processExitsWith: .success) {
      for timeout in [nil, Duration.milliseconds(50)] {
        let error = thrown { () throws(SecretError) in
          _ = try CapturedProcess.run(
            ["sh", "-c", "yes | head -c 100000; exec sleep 600"], named: "The script", environment: [:],
            standardError: .captured, limit: timeout == nil ? 1000 : 1_000_000, timeout: timeout)
        }
        #expect(error?.code == (timeout == nil ? .tooLarge : .timedOut))
        #expect(waitpid(-1, nil, WNOHANG) == -1 && errno == ECHILD)
      }
    }
  }

  /// A program with a deadline gets the default action of each signal. Another program ignores the signals that this
  /// process ignores.
  @Test func ignoredSignalsStayIgnoredWithoutADeadline() async {
    await #expect(processExitsWith: .success) {
      signal(SIGUSR1, SIG_IGN)
      signal(64, SIG_IGN)
      for timeout in [nil, Duration.seconds(600)] {
        let process = try CapturedProcess.run(
          ["sed", "-n", "s/^SigIgn:\t//p", "/proc/self/status"], named: "sed",
          environment: ["PATH": "/usr/bin:/bin"], standardError: .captured, limit: 100, timeout: timeout)
        let mask = try #require(
          UInt64(process.output.string().trimmingCharacters(in: .whitespacesAndNewlines), radix: 16))
        let isIgnored = timeout == nil
        #expect((mask & 1 << (SIGUSR1 - 1) != 0) == isIgnored && (mask & 1 << 63 != 0) == isIgnored)
      }
    }
  }
}
