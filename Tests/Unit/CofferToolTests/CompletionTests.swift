import CofferTestSupport
import Foundation
import Testing

/// Completion of names by real shells, each on a terminal.
@Suite(.needs("zsh", "fish")) struct CompletionTests {
  struct Shell: Sendable, CustomTestStringConvertible {
    let command: String
    let setup: String
    var testDescription: String { command }
  }
  static let shells = [
    Shell(command: "bash --norc -i", setup: "secret completions bash > s; . ./s"),
    Shell(
      command: "zsh -f -i",
      setup:
        "secret completions zsh > _secret; fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -d dump"),
    Shell(command: "fish --no-config -i", setup: "secret completions fish > s; source s"),
  ]

  @Test(arguments: shells) func namesAreCompletedAndNeverExpanded(_ shell: Shell) throws {
    let sandbox = try Sandbox()
    sandbox.environment["TERM"] = "xterm"
    let names = [
      ("plain", "value-1"), ("two words", "value-2"), ("it's: x", "value-3"),
      ("$(touch ran)`touch ran`", "x"),
    ]
    #expect(try sandbox.shell("secret init").status == 0)
    for (name, value) in names {
      let quoted = name.replacingOccurrences(of: "'", with: "'\\''")
      #expect(try sandbox.shell("printf \(value) | secret set '\(quoted)'").status == 0)
    }
    #expect(try sandbox.shell("printf value-4 | secret set -s other elsewhere").status == 0)
    let terminal = try Pseudoterminal("exec \(shell.command)", in: sandbox)
    terminal.type("\(shell.setup); echo rea''dy\n")
    try terminal.wait(for: "ready")
    for (line, value) in [
      ("get pl", "value-1"), ("get tw", "value-2"), ("get it", "value-3"), ("get -s other el", "value-4"),
      ("exp\t --force pl", "value-1"),
    ] {
      terminal.type("secret \(line)\t\n")
      try terminal.wait(for: value)
    }
    terminal.type("secret get \t\t")
    try terminal.wait(for: "two words")
    terminal.type("\u{15}echo do''ne\n")
    try terminal.wait(for: "done")
    #expect(!FileManager.default.fileExists(atPath: sandbox.workingDirectory + "/ran"))
  }
}
