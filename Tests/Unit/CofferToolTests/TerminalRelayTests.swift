import CofferTestSupport
import Foundation
import Testing

/// `run --redact` on a terminal, with programs that use keys, screen, size, job control and settings of the terminal.
@Suite(.timeLimit(.minutes(30))) struct TerminalRelayTests {
  private let sandbox: Sandbox

  init() throws {
    sandbox = try Sandbox()
    sandbox.environment["TERM"] = "xterm"
    #expect(try sandbox.shell("secret init && printf hunter2-and-more | secret set a").status == 0)
  }

  /// Runs an interactive shell, which has job control, without a file of the user.
  private func shell(prompt: String = "ready> ") throws -> Pseudoterminal {
    sandbox.environment["PS1"] = prompt
    let terminal = try Pseudoterminal(
      "exec bash --norc --noprofile --noediting -i", in: sandbox, rows: 24, columns: 80)
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
    try page("\(tool) git log --format=%s") { terminal in
      try terminal.wait(for: "commit 60 [A]")
      terminal.type("G")
      try terminal.wait(for: "commit 1 [A]")
      terminal.type("g/commit 30\n")
      try terminal.wait(for: "commit 25 ")
    }
  }

  /// Runs a command with a pager on a small terminal, calls `use`, leaves the pager, and checks what remains.
  private func page(_ command: String, _ use: (Pseudoterminal) throws -> Void) throws {
    let terminal = try Pseudoterminal("\(command); echo after", in: sandbox, rows: 10, columns: 80)
    try use(terminal)
    terminal.type("q")
    try terminal.wait(for: "after")
    #expect(try terminal.end() == 0)
    #expect(terminal.settings == terminal.firstSettings)
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
    try terminal.wait(for: "-i\r\n")
    try terminal.wait(for: "inside> ")
    terminal.type("sleep 100\n")
    try terminal.waitForProcess("sleep 100")
    terminal.type("\u{1A}")
    try terminal.wait(for: "Stopped")
    terminal.type("jobs\n")
    try terminal.wait(for: "Stopped                 sleep 100")
    terminal.type("fg\n")
    try terminal.wait(for: "sleep 100")
    // The shell prints that line before it hands the terminal over.
    try terminal.press("\u{3}", until: "inside> ")
    terminal.type("echo status $? \"$A\"\n")
    try terminal.wait(for: "status 130 [A]")
    // The shell stops itself, as a job of the shell outside.
    terminal.type("suspend\n")
    try terminal.wait(for: "ready> ")
    #expect(terminal.settings == before)
    terminal.type("fg\n")
    // Before the prompt of the inner shell, keys would still go to the outer one.
    try terminal.wait(for: "inside> ")
    terminal.type("tty; echo again\n")
    try terminal.wait(for: "\r\nagain\r\n")
    try terminal.wait(for: "inside> ")
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

  /// A pager at the end of a pipeline reads the same terminal.
  @Test(.needs("less")) func keysInAPipelineReachThePager() throws {
    try page("\(tool) sh -c 'seq 100; echo $A; sleep 2' | less") { terminal in
      try terminal.wait(for: "5\r\n")
      terminal.type("G")
      try terminal.wait(for: "[A]")
    }
  }

  /// A shell without job control starts a command in the background with no input, and may read the terminal itself.
  @Test func keysReachAShellThatStartedTheCommandInTheBackground() throws {
    let terminal = try Pseudoterminal(
      "\(tool) sh -c 'echo begun; sleep 100' & read line; echo \"got $line\"; kill $!; wait; echo after",
      in: sandbox)
    try terminal.wait(for: "begun")
    terminal.type("this\n")
    try terminal.wait(for: "got this")
    try terminal.wait(for: "after")
  }

  @Test func theOutputOfTheTerminalIsRedactedAsTyped() throws {
    let terminal = try Pseudoterminal("exec \(tool) cat", in: sandbox)
    try terminal.waitForProcess("cat")
    terminal.type("hunter2-and-more\n")
    try terminal.wait(for: "[A]\r\n[A]\r\n")  // the echo, and what cat prints
    // If the text is typed slowly, its first two bytes are shown.
    for character in "hunter2-and-more" {
      terminal.type(String(character))
      usleep(80_000)
    }
    terminal.type("\n")
    try terminal.wait(for: "hu[A]\r\n[A]\r\n")
    terminal.type("\u{4}")
    #expect(try terminal.end() == 0)
    #expect(!terminal.seen.contains("hunt"))
  }

  @Test func theBeginningOfAValueIsShownAfterAMoment() throws {
    let terminal = try Pseudoterminal(
      "exec \(tool) sh -c 'printf \"Is it hu\"; read line; echo \"$line\"'", in: sandbox)
    try terminal.wait(for: "Is it hu")
    terminal.type("no\n")
    try terminal.wait(for: "no\r\n")
    #expect(try terminal.end() == 0)
  }

  @Test func aValueOfSeveralLinesIsRedacted() throws {
    let terminal = try Pseudoterminal(
      "printf 'line one\\nline two\\nline three\\n' | secret set b; exec secret run --redact --set B=b -- sh -c 'echo \"<$B>\"'",
      in: sandbox)
    try terminal.wait(for: "<[B]\r\n>")
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
}
