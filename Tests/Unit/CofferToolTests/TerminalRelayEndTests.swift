import CofferTestSupport
import Foundation
import Testing

/// How `run --redact` on a terminal ends, and what the command inherits from the tool.
@Suite(.timeLimit(.minutes(30))) struct TerminalRelayEndTests {
  private let sandbox: Sandbox
  private let tool = "secret run --redact --set A=a -- "

  init() throws {
    sandbox = try Sandbox()
    #expect(try sandbox.shell("secret init && printf hunter2-and-more | secret set a").status == 0)
  }

  @Test(arguments: [
    "kill -KILL $$", "kill -TERM $$", "kill -TERM $TOOL", "kill -HUP $TOOL", "kill -INT $TOOL",
  ])
  func theSettingsAreRestoredAfterASignal(_ command: String) throws {
    let terminal = try Pseudoterminal(
      "sh -c 'TOOL=$$; export TOOL; exec \(tool) sh -c \"stty raw -echo; echo begun; read line; \(command.replacingOccurrences(of: "$", with: "\\$")); exec sleep 100\"'; "
        + "echo status $?; read line", in: sandbox)
    let before = terminal.firstSettings
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

  @Test func processesLeftRunningNeitherHangTheToolNorAreEnded() throws {
    // A process that has ended may stay as a zombie, which still has its process id.
    let terminal = try Pseudoterminal(
      """
      \(tool) sh -c 'sleep 300 & echo $! >pid; echo done'; echo after; sleep 0.3
      case $(cut -d ' ' -f 3 /proc/$(cat pid)/stat) in S) echo alive ;; esac; kill $(cat pid)
      """, in: sandbox)
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

  /// The command has only the standard streams and the descriptors that were passed to the tool.
  @Test(arguments: ["", "7</dev/null", "</dev/null | cat"])
  func theCommandInheritsNoDescriptorOfTheTool(_ redirection: String) throws {
    let terminal = try Pseudoterminal(
      "sh -c 'ls /proc/self/fd >without' \(redirection); \(tool) sh -c 'ls /proc/self/fd >with' \(redirection); "
        + "diff without with && echo same", in: sandbox)
    try terminal.wait(for: "same")
  }

  /// The relay's environment has neither the vault's key nor a value: a command that root runs could read them.
  @Test func theEnvironmentOfTheToolHasNoKeyAndNoValue() throws {
    sandbox.environment["COFFER_KEY"] = try sandbox.shell("cat ../home/config/coffer/key").outputText
      .trimmingCharacters(in: .newlines)
    for command in [
      "\(tool) sh -c 'echo begun $PPID.; read line'",
      "\(tool) sh -c 'echo begun $PPID.; sleep 1000' </dev/null 2>&1 | cat",
    ] {
      let terminal = try Pseudoterminal(
        "exec env -u X sh -c \"\(command.replacingOccurrences(of: "$", with: "\\$"))\"", in: sandbox)
      try terminal.wait(for: "begun ")
      // The full stop follows because a 6 at the end would be held back: a value in hexadecimal begins with it.
      try terminal.wait(for: ".")
      let parent = try #require(
        terminal.seen.components(separatedBy: "begun ").last?.split(separator: ".").first
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
