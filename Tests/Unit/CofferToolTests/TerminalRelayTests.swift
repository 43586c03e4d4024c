import CofferTestSupport
import Foundation
import Testing

/// `run --redact` on a terminal, with programs that use the whole of it: keys, screen, size, job control and settings.
@Suite(.timeLimit(.minutes(10))) struct TerminalRelayTests {
  private let sandbox: Sandbox

  init() throws {
    sandbox = try Sandbox()
    sandbox.environment["TERM"] = "xterm"
    #expect(try sandbox.shell("secret init && printf hunter2-and-more | secret set a").status == 0)
  }

  /// Runs an interactive shell, which has job control, without a file of the user.
  private func shell(prompt: String = "ready> ") throws -> Pseudoterminal {
    sandbox.environment["PS1"] = prompt
    let terminal = try Pseudoterminal("exec bash --norc --noprofile --noediting -i", in: sandbox, rows: 24, columns: 80)
    try terminal.wait(for: prompt)
    return terminal
  }

  private let tool = "secret run --redact --set A=a -- "

  @Test(.needs("git", "less")) func lessOfGitGetsKeys() throws {
    #expect(
      try sandbox.shell(
        """
        git init -q . && git config user.name n && git config user.email e && \
        for n in $(seq 60); do git commit -q --allow-empty -m "commit $n hunter2-and-more"; done
        """
      ).status == 0)
    sandbox.environment["PAGER"] = "less"
    sandbox.environment["LESS"] = "R"
    let terminal = try Pseudoterminal("\(tool) git log --format=%s; echo after; stty -a", in: sandbox, rows: 10, columns: 80)
    let before = terminal.settings
    try terminal.wait(for: "commit 60 [A]")
    terminal.type("G")
    try terminal.wait(for: "commit 1 [A]")
    terminal.type("g/commit 30\n")
    try terminal.wait(for: "commit 25 ")
    terminal.type("q")
    try terminal.wait(for: "after")
    #expect(try terminal.end() == 0)
    #expect(terminal.settings == before)
    #expect(!terminal.seen.contains("hunter2-and-more"))
  }

  @Test(.needs("vim")) func vimEditsAndIsSuspended() throws {
    let terminal = try shell()
    let before = terminal.settings
    terminal.type("\(tool) vim -u NONE -i NONE -n file\n")
    try terminal.wait(for: "\"file\"")
    #expect(terminal.settings != before)
    terminal.type("ihello\u{1B}")
    terminal.type("\u{1A}")  // Ctrl-Z is a key for vim, which then stops itself
    try terminal.wait(for: "Stopped")
    try terminal.wait(for: "ready> ")
    #expect(terminal.settings == before)
    terminal.type("fg\n")
    try terminal.wait(for: "hello")
    terminal.type("a world\u{1B}:wq\n")
    try terminal.wait(for: "ready> ")
    terminal.type("echo status $? $(cat file)\n")
    try terminal.wait(for: "status 0 hello world")
    #expect(terminal.settings == before)
  }

  @Test(.needs("bash")) func aShellInsideHasJobControl() throws {
    let terminal = try shell()
    let before = terminal.settings
    terminal.type("\(tool) env PS1='inside> ' bash --norc --noprofile --noediting -i\n")
    try terminal.wait(for: "inside> ")
    terminal.type("sleep 100\n")
    try terminal.waitForProcess("sleep 100")
    terminal.type("\u{1A}")
    try terminal.wait(for: "Stopped")
    terminal.type("jobs\n")
    try terminal.wait(for: "Stopped                 sleep 100")
    terminal.type("fg\n")
    try terminal.wait(for: "sleep 100")
    terminal.type("\u{3}")
    try terminal.wait(for: "inside> ")
    terminal.type("echo status $? \"$A\"\n")
    try terminal.wait(for: "status 130 [A]")
    // The shell stops itself, as a job of the shell outside.
    terminal.type("suspend\n")
    try terminal.wait(for: "ready> ")
    #expect(terminal.settings == before)
    terminal.type("fg\n")
    terminal.type("tty; echo again\n")
    try terminal.wait(for: "again\r\n")
    terminal.type("\u{4}")
    try terminal.wait(for: "ready> ")
    #expect(terminal.settings == before)
  }

  @Test(.needs("top")) func topRedrawsForKeysAndSizes() throws {
    let terminal = try Pseudoterminal("exec \(tool) top -d 100", in: sandbox, rows: 12, columns: 90)
    try terminal.wait(for: "PID")
    terminal.type("h")
    try terminal.wait(for: "Help for Interactive Commands")
    terminal.type("q")
    try terminal.wait(for: "PID")
    terminal.resize(rows: 20, columns: 50)
    try terminal.wait(for: "PID")
    terminal.type("q")
    #expect(try terminal.end() == 0)
  }

  @Test func aStoppedCommandIsAJobOfTheShell() throws {
    let terminal = try shell()
    let before = terminal.settings
    terminal.type("\(tool) sleep 100\n")
    try terminal.waitForProcess("sleep 100")
    terminal.type("\u{1A}")
    try terminal.wait(for: "Stopped")
    try terminal.wait(for: "ready> ")
    #expect(terminal.settings == before)
    terminal.type("fg\n")
    try terminal.wait(for: "sleep 100")
    try terminal.eventually { terminal.settings != before }
    terminal.type("\u{3}")
    try terminal.wait(for: "ready> ")
    terminal.type("echo status $?\n")
    try terminal.wait(for: "status 130")
    #expect(terminal.settings == before)
  }

  @Test func aCommandInTheBackgroundStopsWhenItReads() throws {
    let terminal = try shell()
    let before = terminal.settings
    terminal.type("\(tool) sh -c 'echo begun; read line; echo \"got $line $A\"' &\n")
    try terminal.wait(for: "begun")
    try terminal.eventually {
      terminal.type("jobs\n")
      return terminal.shows("Stopped", within: 1)
    }
    #expect(terminal.settings == before)
    terminal.type("fg\n")
    try terminal.wait(for: "read line")
    terminal.type("this\n")
    try terminal.wait(for: "got this [A]")
    try terminal.wait(for: "ready> ")
    #expect(terminal.settings == before)
  }

  /// A pager at the end of a pipeline reads the same terminal.
  @Test(.needs("less")) func keysInAPipelineReachThePager() throws {
    let terminal = try Pseudoterminal(
      "\(tool) sh -c 'seq 100; echo $A; sleep 2' | less; echo after", in: sandbox, rows: 10, columns: 80)
    let before = terminal.settings
    try terminal.wait(for: "5\r\n")
    terminal.type("G")
    try terminal.wait(for: "[A]")
    terminal.type("q")
    try terminal.wait(for: "after")
    #expect(try terminal.end() == 0)
    #expect(terminal.settings == before)
  }

  @Test(arguments: [
    "kill -KILL $$", "kill -TERM $$", "kill -TERM $TOOL", "kill -HUP $TOOL", "kill -INT $TOOL",
  ])
  func theSettingsAreRestoredAfterASignal(_ command: String) throws {
    let terminal = try Pseudoterminal(
      "sh -c 'TOOL=$$; export TOOL; exec \(tool) sh -c \"stty raw -echo; echo begun; read line; \(command.replacingOccurrences(of: "$", with: "\\$")); sleep 100\"'; "
        + "echo status $?; read line", in: sandbox)
    let before = terminal.settings
    try terminal.wait(for: "begun")
    try terminal.eventually { terminal.settings != before }
    terminal.type("\n")
    let signal =
      command.contains("KILL") ? 137 : command.contains("TERM") ? 143 : command.contains("HUP") ? 129 : 130
    try terminal.wait(for: "status \(signal)")
    #expect(terminal.settings == before)
  }

  /// The kernel hangs the inner terminal up when the tool is gone.
  @Test func theCommandEndsWithAKilledTool() throws {
    let terminal = try Pseudoterminal(
      "\(tool) sh -c 'trap \"echo hung up >hup; exit\" HUP; echo begun; while :; do sleep 0.05; done' & echo $! >pid; "
        + "wait; sleep 100", in: sandbox)
    try terminal.wait(for: "begun")
    #expect(try sandbox.shell("kill -KILL $(cat pid)").status == 0)
    try terminal.eventually { (try? sandbox.shell("cat hup").outputText) == "hung up\n" }
  }

  @Test func theOutputOfTheTerminalIsRedactedAsTyped() throws {
    let terminal = try Pseudoterminal("exec \(tool) cat", in: sandbox)
    try terminal.waitForProcess("cat")
    terminal.type("hunter2-and-more\n")
    try terminal.wait(for: "[A]\r\n[A]\r\n")  // the echo, and what cat prints
    // Typed slowly, the first half may be shown, at most.
    for character in "hunter2-and-more" {
      terminal.type(String(character))
      usleep(80_000)
    }
    terminal.type("\n")
    try terminal.wait(for: "hunter2-[A]\r\n[A]\r\n")
    terminal.type("\u{4}")
    #expect(try terminal.end() == 0)
    #expect(!terminal.seen.contains("hunter2-a"))
  }

  @Test func theBeginningOfAValueIsShownAfterAMoment() throws {
    let terminal = try Pseudoterminal(
      "exec \(tool) sh -c 'printf \"Is it hunt\"; read line; echo \"$line\"'", in: sandbox)
    try terminal.wait(for: "Is it hunt")
    terminal.type("no\n")
    try terminal.wait(for: "no\r\n")
    #expect(try terminal.end() == 0)
  }

  @Test func aValueOfSeveralLinesIsRedacted() throws {
    let terminal = try Pseudoterminal(
      "printf 'line one\\nline two\\nline three\\n' | secret set b; exec secret run --redact --set B=b -- sh -c 'echo \"<$B>\"'",
      in: sandbox)
    try terminal.wait(for: "<[B]>")
    #expect(try terminal.end() == 0)
  }

  @Test func muchInputAndOutputPassAtOnce() throws {
    let terminal = try Pseudoterminal(
      "exec \(tool) sh -c 'stty raw -echo; echo begun; head -c 300000 | tee copy; cksum <copy'", in: sandbox)
    try terminal.wait(for: "begun")
    let text = String(repeating: "0123456789abcdefghijklmnopqrstuvwxyz", count: 8334).prefix(300_000)
    terminal.typeWhileReading(String(text))
    #expect(try terminal.end() == 0)
    #expect(try String(contentsOfFile: sandbox.workingDirectory + "/copy", encoding: .utf8) == text)
    #expect(terminal.seen.contains(text))
  }

  @Test func processesLeftRunningNeitherHangTheToolNorAreEnded() throws {
    let terminal = try Pseudoterminal(
      "\(tool) sh -c 'sleep 300 & echo $! >pid; echo done'; echo after; kill -0 $(cat pid) && echo alive; kill $(cat pid)",
      in: sandbox)
    try terminal.wait(for: "done")
    try terminal.wait(for: "after")
    try terminal.wait(for: "alive")
    let endless = try Pseudoterminal(
      "\(tool) sh -c 'yes & echo $! >pid2'; kill $(cat pid2); echo after", in: sandbox)
    try endless.wait(for: "after")
  }

  @Test func theTerminalsNameForGnuPGIsThatOfTheCommand() throws {
    let terminal = try Pseudoterminal(
      "GPG_TTY=$(tty) \(tool) sh -c 'test \"$GPG_TTY\" = \"$(tty)\" && echo same'; tty", in: sandbox)
    try terminal.wait(for: "same")
  }

  @Test func aTerminalThatGoesAwayEndsTheCommand() throws {
    do {
      let terminal = try Pseudoterminal(
        "exec \(tool) sh -c 'trap \"echo hung up >hup; exit\" HUP; echo begun; while :; do sleep 0.05; done'",
        in: sandbox)
      try terminal.wait(for: "begun")
      terminal.hangUp()
      let end = ContinuousClock.now + .seconds(30)
      while (try? String(contentsOfFile: sandbox.workingDirectory + "/hup", encoding: .utf8)) == nil {
        try #require(ContinuousClock.now < end, "the command did not learn of it")
        usleep(20_000)
      }
    }
  }

  /// Only the standard streams, and what was passed in.
  @Test func theCommandInheritsNoDescriptorOfTheTool() throws {
    let terminal = try Pseudoterminal(
      "\(tool) sh -c 'ls /proc/self/fd | tr \"\\n\" \" \"; echo end'; \(tool) sh -c 'ls /proc/self/fd | tr \"\\n\" \" \"; echo end' 7</dev/null; "
        + "\(tool) sh -c 'ls /proc/self/fd | tr \"\\n\" \" \"; echo end' </dev/null | cat", in: sandbox)
    try terminal.wait(for: "0 1 2 3 end")
    try terminal.wait(for: "0 1 2 3 7 end")
    try terminal.wait(for: "0 1 2 3 end")
  }

  /// The relay has neither the vault's key nor, as its own variable, a value: root's child could read them.
  @Test func theEnvironmentOfTheToolHasNoKeyAndNoValue() throws {
    sandbox.environment["COFFER_KEY"] = try sandbox.shell("cat ../home/config/coffer/key").outputText
      .trimmingCharacters(in: .newlines)
    for command in [
      "\(tool) sh -c 'echo begun $PPID; read line'",
      "\(tool) sh -c 'echo begun $PPID; sleep 1000' </dev/null 2>&1 | cat",
    ] {
      let terminal = try Pseudoterminal(
        "exec env -u X sh -c \"\(command.replacingOccurrences(of: "$", with: "\\$"))\"", in: sandbox)
      try terminal.wait(for: "begun ")
      try terminal.wait(for: "\r\n")
      let parent = try #require(
        terminal.seen.components(separatedBy: "begun ").last?.split(whereSeparator: \.isWhitespace).first
          .flatMap { Int($0) })
      var process = parent
      for _ in 0..<2 {
        let name = try String(contentsOfFile: "/proc/\(process)/comm", encoding: .utf8)
        guard name == "secret\n" else { break }
        if let environment = FileManager.default.contents(atPath: "/proc/\(process)/environ") {
          #expect(environment.range(of: Data("coffer-key-v1".utf8)) == nil)
          #expect(environment.range(of: Data("hunter2".utf8)) == nil)
        }
        let status = try String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
        process =
          status.split(separator: "\n").first { $0.hasPrefix("PPid:") }
          .flatMap { Int($0.dropFirst(5).trimmingCharacters(in: .whitespaces)) } ?? 0
      }
      #expect(process != parent, "the parent of the command is not the tool")
    }
  }
}
