import CofferTestSupport
import Foundation
import Testing

/// Completion by real shells, each on a terminal. The completed line is run, so that the shell's own parser decides
/// which name `secret` gets.
@Suite(.needs("zsh", "fish"), .long) struct CompletionTests {
  struct Shell: Sendable, CustomTestStringConvertible {
    let command: String
    let setup: String
    var testDescription: String { command }
    var name: String { String(command.prefix { $0 != " " }) }
  }
  static let shells = [
    Shell(command: "bash --norc -i", setup: "secret completions bash > s; . ./s"),
    Shell(
      command: "zsh -f -i",
      setup:
        "secret completions zsh > _secret; fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -d dump"),
    Shell(command: "fish --no-config -i", setup: "secret completions fish > s; source s"),
  ]

  /// Every kind of character that a shell, a completion script or a terminal treats in its own way.
  static let names = [
    "plain", "two words", " edge ", "it's", "say \"hi\"", "'\"'", "back\\slash", "trail\\", "\\\\",
    "`touch ran`",
    "$(touch ran)", "$HOME", "${HOME}x", "$", "a:b:c", ":x:", "*", "[a-z]?", "{a,b}", "~", "~root", "a ~b",
    "#x", "a#b",
    "!x!", "!!", "a=b", "=ls", "a&b;c|d", ">e<f", "(x)", "^x^y", "%1", "user@host", "@host", "a,b",
    "naïve 秘密 🔑",
    "e\u{301}", "a\u{A0}b", "1", "a/b", "./x", "COFFER", "key=$(touch ran)", "a\\:b",
    "a'b\"c`touch ran`$HOME\\ d!e",
  ]
  /// Names that the terminal must not show as they are.
  static let hiddenNames = [
    "\u{1}\u{1B}[31mred", "a\u{7F}", "\u{9B}31m", "\u{202E}gnp", "zero\u{200B}width", "tag\u{E0041}",
    "a\u{FE0F}",
    "a\tb", "cr\rx",
  ]

  private let sandbox: Sandbox

  init() throws {
    sandbox = try Sandbox()
    sandbox.environment["TERM"] = "xterm"
    #expect(try sandbox.shell("secret init").status == 0)
  }

  /// Stores the names, each in a service of its own, `s0` and so on, with the value `value-NUMBER-`.
  private func store(_ names: [String]) throws {
    for (index, name) in names.enumerated() {
      let entry = try JSONEncoder().encode([
        ["service": "s\(index)", "account": name, "value": "value-\(index)-"]
      ])
      let text = "{\"coffer-secrets\": 1, \"secrets\": \(String(decoding: entry, as: UTF8.self))}"
      #expect(try sandbox.shell("secret import -", input: Data(text.utf8)).status == 0)
    }
  }

  private func start(_ shell: Shell) throws -> Pseudoterminal {
    let terminal = try Pseudoterminal("exec \(shell.command)", in: sandbox, rows: 50, columns: 200)
    terminal.type("\(shell.setup); echo rea''dy\n")
    try terminal.wait(for: "ready")
    return terminal
  }

  /// Types a line with tabs, runs it, and returns what was shown until the next command ended.
  private func run(_ line: String, in terminal: Pseudoterminal, _ mark: String) throws -> String {
    let start = terminal.seen.count
    terminal.type("\(line)\necho do''ne-\(mark)\n")
    try terminal.wait(for: "done-\(mark)")
    return String(terminal.seen.dropFirst(start))
  }

  private func checkNothingRan() {
    #expect(!FileManager.default.fileExists(atPath: sandbox.workingDirectory + "/ran"))
  }

  @Test(arguments: shells) func aCompletedNameIsTheNameAndNeverRuns(_ shell: Shell) throws {
    let names = Self.names + (shell.name == "bash" ? Self.hiddenNames : [])
    try store(names)
    let terminal = try start(shell)
    // fish offers a name with a dot in front only after the dot.
    for (index, name) in names.enumerated() where shell.name != "fish" || !name.hasPrefix(".") {
      // fish does not close a quote after these characters, where another part of a word often follows.
      let isContinued = shell.name == "fish" && name.last.map { "/=@:.,-".contains($0) } == true
      // The shell would expand a tilde in front, so such a name is offered only after a quote.
      let isTilde = shell.name == "fish" && name.hasPrefix("~")
      for quote in isContinued ? [""] : isTilde ? ["\"", "'"] : ["", "\"", "'"] {
        let shown = try run(
          "secret get -s s\(index) \(quote)\t", in: terminal, "\(index)\(quote.utf8.first ?? 0)")
        #expect(
          shown.contains("value-\(index)-"), "\(quote)\(name.debugDescription): \(shown.debugDescription)")
      }
    }
    checkNothingRan()
  }

  /// A part of the name is typed, in the shell's own quotes.
  @Test(arguments: shells) func aTypedBeginningIsContinued(_ shell: Shell) throws {
    let names = [
      "com:example:token", "two words here", "it's mine", "back\\slash", "a$b`c", "user@host", "a=b=c", "x*y",
      "~tilde",
      "naïve name", "-dash one", "say \"so\"",
    ]
    try store(names)
    let terminal = try start(shell)
    let lines = [
      (0, "com"), (0, "com:"), (0, "com:ex"), (0, "com:example:"), (0, "com\\:ex"), (0, "\"com:ex"),
      (0, "'com:ex"),
      (1, "two"), (1, "two\\ w"), (1, "\"two w"), (1, "'two w"), (1, "two' w"), (2, "it\\'"), (2, "\"it's m"),
      (2, "it"),
      (3, "back\\\\"), (3, "'back\\"), (3, "ba"), (4, "a\\$b"), (4, "'a$b`"), (4, "\"a\\$b"), (5, "user@"),
      (5, "us"),
      (5, "user@h"), (6, "a=b="), (6, "a"), (7, "x"), (8, "\\~t"), (8, "'~"),
      (9, "na"),
      (9, "naï"), (10, "-- -d"), (10, "-- '-"), (11, "say\\ \\\"s"), (11, "'say \"s"),
    ]
    for (index, text) in lines {
      let mark = "\(index)-\(text.utf8.reduce(7) { ($0 * 31 + Int($1)) % 1_000_003 })"
      let shown = try run("secret get -s s\(index) \(text)\t", in: terminal, mark)
      #expect(shown.contains("value-\(index)-"), "\(text): \(shown.debugDescription)")
    }
    checkNothingRan()
  }

  @Test(arguments: shells) func everyArgumentWithAValueInTheStoreIsCompleted(_ shell: Shell) throws {
    #expect(
      try sandbox.shell(
        """
        mkdir run; printf 'A=1' > 'file name'; printf v1 | secret set 'only one'; printf v2 | secret set -s 'svc: $x' 'in svc'
        printf v3 | secret set 'gone away'; secret remove 'gone away'
        """
      ).status == 0)
    let terminal = try start(shell)
    for (number, (line, expected)) in [
      ("secret ru\t --set A=onl\t -- sh -c 'echo got-$A'", "got-v1"),
      ("secret run --set A=\t -- sh -c 'echo got-$A'", "got-v1"),
      ("secret get -s svc\t in\t", "v2"), ("secret get --service svc\t \t", "v2"),
      ("secret get --service=svc\t in\t", "v2"),
      ("secret -s svc\t run --file A=in\t -- sh -c 'cat $A; echo -end'", "v2-end"),
      ("secret list on\t", "only one"), ("secret history on\t", "current"),
      ("secret history gone\t | cut -f3", "removed"),
      ("secret restore gone\t; secret get 'gone away'; secret remove --purge 'gone away'", "v3"),
      ("secret info onl\t", "label: got-it"),
      ("secret export onl\t | cat", "account"), ("EDITOR=true secret edit onl\t", "Nothing was changed"),
      ("secret set --from-file file\t x; secret info x", "name: x"),
      ("secret import file\t", "Imported 1"),
      ("secret run --set A=onl\t -- ec\t-not-a-command", ""),
      ("secret run --set A=onl\t -- cat file\t; echo r''ead", "read"),
      ("secret move onl\t moved; secret get moved", "v1"),
      ("secret --vault=$XDG_DATA_HOME/coffer/default.vault get mo\t", ""),
      ("secret exp\t --form\t json moved 2>&1 | cat", "Revealing"),
      ("secret key rem\t \t", "No key slot would remain"),
    ].enumerated() {
      if line.hasPrefix("secret info onl") {
        #expect(try sandbox.shell("printf v1 | secret set 'only one' --label got-it").status == 0)
      }
      let shown = try run(line, in: terminal, "n\(number)")
      #expect(expected.isEmpty || shown.contains(expected), "\(line): \(shown.debugDescription)")
    }
    checkNothingRan()
  }

  @Test(arguments: shells) func severalNamesAreListedAndTheirCommonPartIsInserted(_ shell: Shell) throws {
    #expect(
      try sandbox.shell(
        """
        printf v1 | secret set 'a $(touch ran)1'; printf v2 | secret set 'a $(touch ran)2'
        printf x | secret set -s hidden "$(printf 'h\\342\\200\\256x')"; printf x | secret set -s hidden hy
        """
      ).status == 0)
    let terminal = try start(shell)
    let shown = try run("secret get a\t2", in: terminal, "common")
    #expect(shown.contains("v2"), "\(shown.debugDescription)")
    terminal.type("secret get a\t\t\t")
    try terminal.wait(for: ")2")
    _ = try run("\u{15}", in: terminal, "listed")
    terminal.type("secret get -s hidden h\t\t\t")
    try terminal.wait(for: "hy")
    _ = try run("\u{15}", in: terminal, "hidden")
    #expect(!terminal.seen.unicodeScalars.contains("\u{202E}"))
    checkNothingRan()
  }
}
