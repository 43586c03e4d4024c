import CofferTestSupport
import Foundation
import Testing

/// `export`, and other commands that print names and values, on a terminal.
@Suite struct ExportTests {
  @Test func exportToATerminalRequiresForce() throws {
    let sandbox = try Sandbox()
    #expect(try sandbox.shell("secret init && printf canary | secret set a").status == 0)
    let refused = try Pseudoterminal("secret export", in: sandbox)
    try refused.wait(for: "add --force")
    #expect(try refused.end() == 64)
    #expect(!refused.seen.contains("canary"))
    let forced = try Pseudoterminal("secret export --force", in: sandbox)
    try forced.wait(for: "canary")
    #expect(try forced.end() == 0)
  }

  @Test func noCharacterOfAValueControlsTheTerminal() throws {
    let sandbox = try Sandbox()
    // C0, C1, a direction, a zero width space, a tag and a variation selector, in a value, a name and a label.
    let hostile = #"\033]0;x\007 \302\2331m \342\200\256 \342\200\213 \363\240\201\201 \357\270\217 end"#
    let set = "printf '\(hostile)' | secret set \"$(printf '\(hostile)')\" --label \"$(printf '\(hostile)')\""
    #expect(try sandbox.shell("secret init && \(set)").status == 0)
    let commands = [
      "export --force", "export --force --format dotenv a", "list", "list --long", "list --json", "find end",
      "find --json end", "info \"$(secret list)\"", "history \"$(secret list)\"", "list --null",
      "get \"$(secret list)\"", "get \"$(secret list)x\"", "keyring get secret \"$(secret list)\"",
      "keyring --mode creds get secret \"$(secret list)\"",
      "keyring --output json --mode creds get secret \"$(secret list)\"",
    ]
    for command in commands {
      let terminal = try Pseudoterminal("secret \(command)", in: sandbox)
      _ = try terminal.end()
      #expect(!terminal.seen.isEmpty)
      let unsafe = terminal.seen.unicodeScalars.filter {
        !"\r\n\t".unicodeScalars.contains($0)
          && ($0.properties.isDefaultIgnorableCodePoint
            || [.control, .format].contains($0.properties.generalCategory))
      }
      #expect(unsafe.isEmpty, "\(command): \(terminal.seen.debugDescription)")
    }
    // What the terminal showed can be imported again.
    let shown = try Pseudoterminal("secret export --force 2> names", in: sandbox)
    #expect(try shown.end() == 0)
    try Data(shown.seen.replacingOccurrences(of: "\r\n", with: "\n").utf8)
      .write(to: URL(fileURLWithPath: sandbox.workingDirectory + "/shown"))
    #expect(try sandbox.shell("secret import shown").errorText.contains("Unchanged: 1."))
    // dotenv has no escapes.
    #expect(try sandbox.shell("printf 'a\\033b' | secret set -s d a").status == 0)
    let refused = try Pseudoterminal("secret export -s d --force --format dotenv", in: sandbox)
    #expect(try refused.end() == 64)
    #expect(refused.seen.contains("which only JSON can escape for a terminal"))
    // The answer of a credential helper has no escapes either.
    #expect(try sandbox.shell("printf 'a\\033b' | secret set -s git:https://h u").status == 0)
    let answer = try Pseudoterminal(
      "printf 'protocol=https\\nhost=h\\n' | secret git-credential get", in: sandbox)
    #expect(try answer.end() == 64)
    #expect(answer.seen.contains("Use a pipe"))
  }

  /// python-dotenv and bash read a random value alike, unless `export` refuses it by name.
  @Test(.needs("bash", "/usr/lib/python3/dist-packages/dotenv"))
  func otherProgramsReadAnExportedFileAlike() throws {
    let sandbox = try Sandbox()
    #expect(try sandbox.shell("secret init").status == 0)
    let program = #"""
      import dotenv, json, os, random, re, subprocess
      random.seed(7)
      parts = ["'", '"', "\\", "$", "`", "{", "}", "#", "=", " ", "\n", "\t", "é", "a", "B", "7", ":", "%", "\\n", "${A}"]
      values = {f"V{n}": "".join(random.choices(parts, k=random.randint(1, 8))) for n in range(400)}
      entries = [{"service": "r", "account": name, "value": value} for name, value in values.items()]
      text = json.dumps({"coffer-secrets": 1, "secrets": entries}).encode()
      subprocess.run(["secret", "import", "--verbatim", "-"], input=text, check=True)
      export = ["secret", "-s", "r", "export", "--format", "dotenv", "-o", "file"]
      refusal = subprocess.run(export, capture_output=True)
      refused = re.findall("“(V[0-9]+)”", refusal.stderr.decode())
      assert refusal.returncode == 64 and 100 < len(refused) < 300, refusal
      subprocess.run(export + ["--except=" + name for name in refused], check=True)
      read = "import json, os; print(json.dumps({n: v for n, v in os.environ.items() if n[0] == 'V'}))"
      shell = subprocess.run(["bash", "-c", f'set -a; . ./file; exec /usr/bin/python3 -c "{read}"'], stdout=subprocess.PIPE)
      for found in [dotenv.dotenv_values("file"), json.loads(shell.stdout)]:
          for name in sorted(values.keys() - set(refused)):
              assert found.get(name) == values[name], (name, found.get(name), values[name])
      """#
    let file = URL(fileURLWithPath: sandbox.workingDirectory + "/program")
    try Data(program.utf8).write(to: file)
    let result = try sandbox.shell("/usr/bin/python3 program")
    #expect(result.status == 0, "\(result.errorText)")
  }

  @Test func aPathDoesNotControlTheTerminal() throws {
    let sandbox = try Sandbox()
    sandbox.environment["COFFER_VAULT"] = sandbox.directory + "/home/a\u{1B}]0;x\u{7}b"
    #expect(try sandbox.shell("secret init").status == 0)
    let terminal = try Pseudoterminal("secret trust", in: sandbox)
    #expect(try terminal.end() == 0)
    #expect(terminal.seen.contains(#"a\u{1B}]0;x\u{7}b"#), "\(terminal.seen.debugDescription)")
  }
}
