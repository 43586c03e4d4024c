import CofferCore
import CofferSimulation
import CofferTestSupport
import Foundation
import Testing

@testable import CofferTool

/// `run --redact` on a terminal, which the command does not notice.
@Suite struct RedactionTests {
  private let sandbox: Sandbox

  init() throws {
    sandbox = try Sandbox()
    #expect(try sandbox.shell("secret init && printf hunter2 | secret set a").status == 0)
  }

  private func run(_ command: String) throws -> Pseudoterminal {
    try Pseudoterminal("exec secret run --redact --set A=a -- sh -c '\(command)'", in: sandbox)
  }

  @Test func theCommandHasATerminalOfTheSameSize() throws {
    let terminal = try Pseudoterminal(
      "read line; exec secret run --redact --set A=a -- sh -c 'test -t 0 && test -t 1 && test -t 2 && echo all; "
        + "trap \"stty size <&1\" WINCH; stty size <&1; printf \"\\033[31m$A\\n\"; while :; do sleep 0.05; done'",
      in: sandbox)
    terminal.resize(rows: 33, columns: 111)
    terminal.type("\n")
    try terminal.wait(for: "all\r\n33 111\r\n")
    try terminal.wait(for: "\u{1B}[31m[A]\r\n")
    terminal.resize(rows: 44, columns: 99)
    try terminal.wait(for: "44 99")
    terminal.type("\u{3}")
    #expect(try terminal.end() == -SIGINT)
    #expect(!terminal.seen.contains("hunter2"))
  }

  @Test(arguments: [(SIGINT, "\u{3}"), (SIGQUIT, "\u{1C}")])
  func aKeyOnTheTerminalReachesTheCommandOnce(_ signal: Int32, _ key: String) throws {
    let name = signal == SIGINT ? "INT" : "QUIT"
    let terminal = try run(
      "trap \"echo caught\" \(name); echo ready; while :; do sleep 0.01; done")
    try terminal.wait(for: "ready")
    terminal.type(key)
    try terminal.wait(for: "caught")
    usleep(300_000)  // long enough for a second signal to arrive
    kill(terminal.process, SIGTERM)
    #expect(try terminal.end() == -SIGTERM)
    #expect(terminal.seen.components(separatedBy: "caught").count == 2)
  }

  @Test func theCommandReadsTheTerminal() throws {
    let terminal = try run("read line; echo \"got $line and $A\"; exit 7")
    terminal.type("this\n")
    #expect(try terminal.end() == 7)
    #expect(terminal.seen.contains("got this and [A]\r\n"))
  }

  @Test func whichValuesAreTooLongForEveryFormIsSaid() throws {
    let command = "seq 20000 | tee long | secret set b && secret run --redact --quiet --set A=a --file B=b --"
    let result = try sandbox.shell("\(command) sh -c 'tail -c 50000 long; echo \"$A\"'")
    #expect(result.status == 0)
    #expect(result.errorText.contains("Long values: B."))
    #expect(result.outputText.hasSuffix("[A]\n"))
  }

  /// The shell is dash, which leaves the settings of the terminal to the job: bash restores them itself.
  @Test(.needs("dash")) func stoppingTheJobStopsTheToolAndTheCommand() throws {
    let terminal = try Pseudoterminal(
      """
      exec dash -c 'set -m; secret run --redact --set A=a -- sh -c "echo ready; read line; echo \\"\\$line \\$A\\""; \
      echo stopped; read line; fg; true'
      """, in: sandbox)
    let before = terminal.firstSettings
    try terminal.wait(for: "ready")
    try terminal.eventually { terminal.settings != before }
    terminal.type("\u{1A}")
    try terminal.wait(for: "stopped")
    #expect(terminal.settings == before)
    terminal.type("continue\n")
    try terminal.eventually { terminal.settings != before }
    terminal.type("on\n")
    try terminal.wait(for: "on [A]")
    #expect(try terminal.end() == 0)
    #expect(terminal.settings == before)
  }

  @Test func formsOfTheValueAreFoundOnTheTerminal() throws {
    let terminal = try Pseudoterminal(
      """
      printf 'a/b\\nc "and more"' | secret set b; exec secret run --redact --set B=b -- sh -c '
      printf %s "user:$B" | base64 -w 9; echo; printf %s "$B" | od -An -v -tx1 -w5; echo "<a%2Fb%0Ac%20%22and%20more%22>"'
      """, in: sandbox)
    try terminal.wait(for: "dXNlcjp[B]\r\n\r\n [B]\r\n<[B]>\r\n")
    #expect(try terminal.end() == 0)
  }

  private func redacted(_ text: String, _ chunk: Int, _ values: [String]) -> String {
    var output = OutputRedactor(redacting: values)
    var shown: [UInt8] = []
    let bytes = Array(text.utf8)
    for start in stride(from: 0, to: bytes.count, by: chunk) {
      shown += output.redact(bytes[start..<min(start + chunk, bytes.count)])
    }
    return String(decoding: shown + output.finish(), as: UTF8.self)
  }

  @Test(arguments: 1...40) func aValueSplitBetweenReadsIsRedacted(_ chunk: Int) {
    let text = "aaab aaaab hunter2 hunhunter2er2 aHVudGVyMg== aHVudGVyMgo= hunter2-long hunter2-lon hunt"
    #expect(
      redacted(text, chunk, ["aaab", "hunter2", "hunter2-long"])
        == "[0] a[0] [1] hun[1]er2 [1] [1] [2] [1]-lon hunt")
  }

  /// The worst case for what is shown of a value: the output pauses after every byte.
  @Test(arguments: [
    ["hunter2"], ["abcd"], ["aaaaaaab"], ["a-very-long-value-for-this"], ["abcdefghijklmnop", "cdef"],
  ])
  func pausesShowAtMostTwoBytesOfAValue(_ values: [String]) {
    func shown(_ text: String) -> String {
      var output = OutputRedactor(redacting: values)
      var shown: [UInt8] = []
      for byte in text.utf8 {
        shown += output.redact([byte])
        shown += output.showBeginning()
      }
      return String(decoding: shown + output.finish(), as: UTF8.self)
    }
    for value in values {
      let most = min(value.count / 2, 2)
      let rest = value.dropFirst(most)
      for text in ["x\(value)y", value + value]
      where !values.contains(where: { value.contains($0) && $0 != value }) {
        #expect(!shown(text).contains(value.prefix(most + 1)))
      }
      for text in ["x\(value)y", value.prefix(3) + value, "abcdefgX" + value] {
        #expect(!shown(text).contains(rest), "\(text): \(shown(text))")
      }
      let other = "\(value.dropLast())!"
      if values.count == 1 { #expect(shown(other) == other) }
    }
  }

  /// A pause shows the part of a form that stands for the first two bytes of the value, and at most half of the value.
  @Test func pausesShowTheBeginningOfEachForm() {
    let values = ["hunter2/and", "0123456789"]
    for (text, most) in [
      ("hunter2/and", "hu"), ("68756e746572322f616e64", "6875"), ("aHVudGVyMi9hbmQ=", "aHV"),
      ("MDEyMzQ1Njc4OQ==", "MDE"),
      ("hunter2%2Fand", "hu"), ("68 75 6e 74 65 72 32 2f 61 6e 64", "68 75 "), ("0123456789", "01"),
    ] {
      var output = OutputRedactor(redacting: values)
      var shown: [UInt8] = []
      for byte in text.utf8.dropLast() {
        shown += output.redact([byte])
        shown += output.showBeginning()
      }
      #expect(String(decoding: shown, as: UTF8.self) == most)
      shown += output.redact(Array(text.utf8.suffix(1))[...]) + output.finish()
      #expect(String(decoding: shown, as: UTF8.self).hasPrefix(most + "["), "\(text)")
    }
  }

  /// Almost no prompt or log line that ends in a number, a word or an id waits for more output.
  @Test(arguments: [1, 10, 100]) func promptsDoNotWait(_ count: Int) {
    var random = SeededRandom(seed: 7)
    let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
    func text(_ length: Int) -> String {
      String((0..<length).map { _ in letters.randomElement(using: &random)! })
    }
    let redactor = OutputRedactor(redacting: (0..<count).map { _ in text(24) })
    var waiting = 0
    for number in 0..<1000 {
      let line = [
        "Password: ", "listening on port \(number * 61 % 65536)", "job \(text(6)) done",
        "step \(number) of 9",
      ][number % 4]
      var output = redactor
      let shown = output.redact(Array(line.utf8)[...]) + output.showBeginning()
      if shown.count < line.utf8.count { waiting += 1 }
    }
    #expect(waiting <= 1)
  }

  @Test func whatIsNotAValueIsShownWhole() {
    var output = OutputRedactor(redacting: ["hunter2-and"])
    var shown = output.redact(Array("is hunter".utf8)[...])
    #expect(shown == Array("is ".utf8))
    shown += output.showBeginning()
    #expect(shown == Array("is hu".utf8))
    #expect(output.showBeginning().isEmpty)
    shown += output.redact(Array("s here".utf8)[...])
    #expect(shown + output.finish() == Array("is hunters here".utf8))
  }
}

extension OutputRedactor {
  /// The replacements are the indices of the values.
  init(redacting values: [String]) {
    self.init(
      RedactionPatterns(values.enumerated().map { ("\($0)", SecretBytes($1)) }))
  }
}
