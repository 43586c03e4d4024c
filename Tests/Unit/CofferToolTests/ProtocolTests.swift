import CofferTestSupport
import Foundation
import Testing

/// Real programs that store their passwords in `secret`, with a real server.
@Suite(.long) struct ProtocolTests {
  private static let directory = (#filePath as NSString).deletingLastPathComponent + "/Protocols"

  /// Runs a script of `Protocols`, which prints `done` if all its expectations are met.
  private func run(_ script: String, _ argument: String = "", in sandbox: Sandbox) throws {
    let result = try sandbox.shell(
      "PYTHONDONTWRITEBYTECODE=1 PYTHONPATH= python3 \(Self.directory)/\(script) \(argument)")
    #expect(result.status == 0 && result.outputText == "done\n", "\(result.outputText)\n\(result.errorText)")
  }

  @Test func gitPromptsOnceForAPassword() throws {
    try run("git.py", "'!secret git-credential'", in: try Sandbox())
  }

  @Test func gitFindsTheHelperByItsName() throws {
    let sandbox = try Sandbox()
    #expect(try sandbox.shell("ln -s secret ../bin/git-credential-secret").status == 0)
    try run("git.py", "secret", in: sandbox)
  }

  @Test func pipReadsThePasswordOfAnIndexFromKeyring() throws {
    let sandbox = try Sandbox()
    #expect(try sandbox.shell("ln -s secret ../bin/keyring").status == 0)
    try run("pip.py", in: sandbox)
  }
}
