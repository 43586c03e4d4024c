import CofferTestSupport
import Foundation
import Testing

/// `run --file` and `run --restart`, whose command is a child of the tool.
@Suite(.timeLimit(.minutes(30))) struct ChildCommandTests {
  private let sandbox: Sandbox

  init() throws {
    sandbox = try Sandbox()
    let made = "secret init && printf one | secret set a && printf two | secret set b"
    #expect(try sandbox.shell(made).status == 0)
  }

  private func text(of name: String) -> String {
    let data = FileManager.default.contents(atPath: "\(sandbox.workingDirectory)/\(name)")
    return String(decoding: data ?? Data(), as: UTF8.self)
  }

  /// The words of the lines that a command wrote to the file `seen`.
  private var seen: [[String]] {
    text(of: "seen").split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
  }

  private func eventually(_ condition: () throws -> Bool) throws {
    let end = ContinuousClock.now + .seconds(60)
    while try !condition() {
      try #require(ContinuousClock.now < end, "\(seen); \(text(of: "said"))")
      usleep(10_000)
    }
  }

  private func isRunning(_ process: String) throws -> Bool {
    FileManager.default.fileExists(atPath: "/proc/\(process)")
  }

  private func restarts() -> Int { text(of: "said").components(separatedBy: "Restarting").count - 1 }

  /// Starts the tool with a command that writes its process id, both values and the file's path.
  private func start(_ options: String, _ rest: String = "exec sleep 1000") throws -> ChildProcess {
    let command = #"echo $$ "$A" "$(cat "$F")" "$F" >>seen; \#(rest)"#
    return try sandbox.start(
      "exec secret run \(options) --set A=a --file F=b -- sh -c '\(command)' 2>said")
  }

  private func set(_ name: String, _ value: String) throws {
    #expect(try sandbox.shell("printf %s \(value) | secret set \(name)").status == 0)
  }

  // MARK: Restarts

  @Test(arguments: ["--restart", "--restart --redact"])
  func aChangedValueRestartsTheCommand(_ options: String) throws {
    let tool = try start(options)
    try eventually { seen.count == 1 }
    try set("a", "three")
    try eventually { seen.count == 2 }
    #expect(seen.map { [$0[1], $0[2]] } == [["one", "two"], ["three", "two"]])
    #expect(text(of: "said").contains("secret: Restarting the command, because “a” changed.\n"))
    try eventually { try !isRunning(seen[0][0]) }
    #expect(!FileManager.default.fileExists(atPath: seen[0][3]))

    // Changes of another secret or of a label cause no restart. One transaction causes one restart.
    try set("other", "x")
    #expect(try sandbox.shell("printf three | secret set a --label L").status == 0)
    usleep(1_000_000)  // long enough for a restart to begin
    let both = "printf 'a=four\\nb=five\\n' | secret import --overwrite -"
    #expect(try sandbox.shell(both).status == 0)
    try eventually { seen.count == 3 }
    #expect([seen[2][1], seen[2][2]] == ["four", "five"] && restarts() == 2, "\(text(of: "said"))")

    // After the secret is removed, the command keeps running.
    #expect(try sandbox.shell("secret remove b").status == 0)
    try eventually { text(of: "said").contains("was not restarted, and keeps the values that it has. There") }
    #expect(try isRunning(seen[2][0]) && FileManager.default.fileExists(atPath: seen[2][3]))
    try set("b", "six")
    try eventually { seen.count == 4 }
    #expect(seen[3][2] == "six")

    tool.send(SIGTERM)
    #expect(try tool.end() == -SIGTERM)
    #expect(try seen.allSatisfy { try !isRunning($0[0]) })
    for line in seen {
      #expect(!FileManager.default.fileExists(atPath: (line[3] as NSString).deletingLastPathComponent))
    }
    #expect(seen.count == 4 && restarts() == 3)
  }

  /// Waits as long as the tool does by itself. ``CommandRestartTests`` has a shorter time.
  @Test(arguments: ["--restart", "--restart --redact"])
  func aCommandThatIgnoresSIGTERMIsKilled(_ options: String) throws {
    let tool = try start(options, #"[ "$A" = new ] || trap "" TERM; while :; do sleep 0.1; done"#)
    try eventually { seen.count == 1 }
    try set("a", "new")
    try eventually { seen.count == 2 }
    #expect(seen[1][1] == "new")
    #expect(try !isRunning(seen[0][0]))
    tool.send(SIGTERM)
    #expect(try tool.end() == -SIGTERM)
  }

  @Test func aCommandThatWasToldToEndIsNotStartedAgain() throws {
    let tool = try start(
      "--restart", #"trap "echo told >told" TERM; until [ -e go ]; do sleep 0.05; done; exit 5"#)
    try eventually { seen.count == 1 }
    // The second SIGTERM comes while the command ends.
    try set("a", "new")
    try eventually { text(of: "told") == "told\n" }
    #expect(try sandbox.shell("rm told").status == 0)
    tool.send(SIGTERM)
    try eventually { text(of: "told") == "told\n" }
    #expect(try sandbox.shell("touch go").status == 0)
    #expect(try tool.end() == 5)
    #expect(seen.count == 1)
  }

  @Test func aVaultThatCannotBeReadLeavesTheCommandAsItIs() throws {
    let tool = try start("--restart")
    try eventually { seen.count == 1 }
    #expect(try sandbox.shell("cp ../home/data/coffer/default.vault kept").status == 0)
    #expect(try sandbox.shell("echo damaged >../home/data/coffer/default.vault").status == 0)
    try eventually { text(of: "said").contains("was not restarted, and keeps the values that it has.") }
    #expect(try isRunning(seen[0][0]))
    #expect(try sandbox.shell("cat kept >../home/data/coffer/default.vault").status == 0)
    try set("a", "new")
    try eventually { seen.count == 2 }
    tool.send(SIGTERM)
    #expect(try tool.end() == -SIGTERM)
  }

  // MARK: Ends

  @Test(arguments: ["", "--restart", "--redact", "--restart --redact"])
  func theFileIsGoneWhenASignalEndsTheTool(_ options: String) throws {
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGALRM] {
      try? FileManager.default.removeItem(atPath: "\(sandbox.workingDirectory)/seen")
      let tool = try start(options)
      try eventually { seen.count == 1 }
      let path = seen[0][3]
      #expect(FileManager.default.fileExists(atPath: path))
      tool.send(signal)
      #expect(try tool.end() == -signal)
      #expect(!FileManager.default.fileExists(atPath: (path as NSString).deletingLastPathComponent))
      #expect(try !isRunning(seen[0][0]))
    }
  }

  @Test func doctorNamesTheFilesOfAKilledTool() throws {
    let tool = try start("")
    try eventually { seen.count == 1 }
    let directory = (seen[0][3] as NSString).deletingLastPathComponent
    let finding = "note files: an interrupted secret run left a value in \(directory)\n"
    #expect(try !sandbox.shell("secret doctor").outputText.contains(finding))
    tool.send(SIGKILL)
    #expect(try tool.end() == -SIGKILL)
    #expect(try sandbox.shell("secret doctor").outputText.contains(finding))
    #expect(try sandbox.shell("kill \(seen[0][0]); rm -r \(directory)").status == 0)
    #expect(try !sandbox.shell("secret doctor").outputText.contains(finding))
  }

  /// A second name shows what was in the file when it was removed. Not run as root, who may write to every file.
  @Test func theFileIsOverwrittenAlthoughItIsReadOnly() throws {
    let user = geteuid() == 0 ? "setpriv --reuid 54321 --regid 54321 --clear-groups" : ""
    let kept = try TemporaryDirectory(inMemory: true)
    let prepared = try sandbox.shell(
      """
      cp $(readlink -f ../bin/secret) . && { chown -R 54321 .. \(kept.path) || test $(id -u) != 0; } && \
      \(user) ./secret run --file F=b -- sh -c 'ln "$F" \(kept.path)/value && cat "$F"'
      """)
    #expect(prepared.status == 0 && prepared.outputText == "two", "\(prepared.errorText)")
    #expect(try Data(contentsOf: URL(filePath: kept.file("value"))) == Data(count: 3))
  }

  // MARK: The terminal

  /// Runs an interactive shell, which has job control, without a file of the user.
  private func shell() throws -> Pseudoterminal {
    sandbox.environment["PS1"] = "ready> "
    let terminal = try Pseudoterminal(
      "exec bash --norc --noprofile --noediting -i", in: sandbox, rows: 24, columns: 80)
    try terminal.wait(for: "ready> ")
    return terminal
  }

  @Test(.needs("bash"), arguments: ["--file F=b", "--restart --set A=a", "--redact --file F=b"])
  func theCommandIsAJobOfTheShell(_ options: String) throws {
    let terminal = try shell()
    terminal.type("secret run \(options) -- sh -c 'echo be''gun; read line; echo got $line; exit 7'\n")
    try terminal.wait(for: "begun")
    terminal.type("\u{1A}")
    try terminal.wait(for: "Stopped")
    try terminal.wait(for: "ready> ")
    terminal.type("jobs; fg\n")
    try terminal.wait(for: "Stopped")
    try terminal.wait(for: "secret run")
    // The shell prints that line before it hands the terminal over.
    usleep(300_000)
    terminal.type("this\n")
    try terminal.wait(for: "got this")
    try terminal.wait(for: "ready> ")
    terminal.type("echo status $?\n")
    try terminal.wait(for: "status 7")
    try terminal.wait(for: "ready> ")
    // In the background, it is stopped when it reads the terminal.
    terminal.type("secret run \(options) -- sh -c 'echo be''gun; read line; echo got $line' &\n")
    try terminal.wait(for: "begun")
    terminal.type("wait\n")
    try terminal.wait(for: "Stopped")
    terminal.type("fg\n")
    try terminal.wait(for: "secret run")
    usleep(300_000)
    terminal.type("that\n")
    try terminal.wait(for: "got that")
  }

  /// The tool stops when its command stops, even if only the command got the signal, and not if the command ignores it.
  @Test(.needs("bash", "python3"), arguments: ["--file F=b", "--restart --set A=a"])
  func theToolStopsAsItsCommandDoes(_ options: String) throws {
    let terminal = try shell()
    for signal in ["STOP", "TSTP"] {
      terminal.type("secret run \(options) -- sh -c 'kill -\(signal) $$; echo went'' on'\n")
      try terminal.wait(for: "Stopped")
      try terminal.wait(for: "ready> ")
      terminal.type("fg\n")
      try terminal.wait(for: "went on")
      try terminal.wait(for: "ready> ")
    }
    try Data(
      """
      import signal
      # Waits for the signal: a handler would not run if it came just before input() waits.
      signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTSTP])
      print("begun", flush=True)
      signal.sigwait([signal.SIGTSTP])
      print("caught", flush=True)
      print("ended with", input())
      """.utf8
    ).write(to: URL(filePath: "\(sandbox.workingDirectory)/program"))
    terminal.type("secret run \(options) -- python3 program\n")
    try terminal.wait(for: "begun")
    terminal.type("\u{1A}")
    try terminal.wait(for: "caught")
    terminal.type("this\n")
    try terminal.wait(for: "ended with this")
    try terminal.wait(for: "ready> ")
    terminal.type("secret run \(options) -- sh -c 'echo be''gun; exec sleep 100'\n")
    try terminal.wait(for: "begun")
    terminal.type("\u{3}")
    try terminal.wait(for: "ready> ")
    terminal.type("echo status $?\n")
    try terminal.wait(for: "status 130")
  }

  @Test(.needs("bash", "less")) func lessIsSuspended() throws {
    let terminal = try shell()
    sandbox.environment["TERM"] = "xterm"
    #expect(try sandbox.shell("seq 100 >lines").status == 0)
    terminal.type("TERM=xterm secret run --file F=b -- less lines\n")
    // The prompt of less, in reverse video. A key that comes before less waits for keys may wait for the next one.
    try terminal.wait(for: "\u{1B}[7mlines")
    try terminal.press("\u{1A}", until: "Stopped")
    try terminal.wait(for: "ready> ")
    #expect(terminal.echoes)
    terminal.type("fg\n")
    try terminal.wait(for: "22")
    try terminal.press("q", until: "ready> ")
  }

  /// The kernel does not stop a process group that no shell can continue. The tool must not try again for ever.
  @Test(.needs("python3"), arguments: ["", "--redact"])
  func withoutAShellTheCommandIsNotStopped(_ options: String) throws {
    try Data(
      """
      import os, signal, time
      continued = []
      signal.signal(signal.SIGCONT, lambda *_: continued.append(True))
      for _ in range(20):
          os.kill(os.getpid(), signal.SIGTSTP)
          end = time.monotonic() + 0.1
          while time.monotonic() < end:
              time.sleep(0.01)
      print("went on" if len(continued) <= 20 else "stopped again and again")
      """.utf8
    ).write(to: URL(filePath: "\(sandbox.workingDirectory)/program"))
    let terminal = try Pseudoterminal(
      "exec secret run \(options) --file F=b -- python3 program", in: sandbox)
    try terminal.wait(for: "went on")
    #expect(try terminal.end() == 0)
  }
}
