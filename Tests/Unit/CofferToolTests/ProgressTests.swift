import CofferTestSupport
import Foundation
import Testing

/// The progress of long operations, which is shown only on a terminal.
@Suite struct ProgressTests {
  private let sandbox: Sandbox

  init() throws {
    sandbox = try Sandbox()
    #expect(try sandbox.shell("secret init && seq 40 | sed 's/.*/N&=x/' > env").status == 0)
  }

  @Test(arguments: [("verify", "Verifying "), ("rekey", "Encrypting the vault …")])
  func aLongOperationShowsAMessage(_ command: String, _ line: String) throws {
    // The command waits for the vault, which another process has locked.
    let other = try Pseudoterminal(
      "flock -x ../home/data/coffer/default.vault sh -c 'echo held; read line'", in: sandbox)
    try other.wait(for: "held")
    let terminal = try Pseudoterminal("secret \(command)", in: sandbox)
    try terminal.wait(for: line)
    other.type("\n")
    try terminal.wait(for: "\r\u{1B}[K")
    #expect(try terminal.end() == 0)
    #expect(try other.end() == 0)
    // The message does not appear without a terminal.
    #expect(!(try sandbox.shell("secret \(command)").errorText.contains(line)))
  }
}
