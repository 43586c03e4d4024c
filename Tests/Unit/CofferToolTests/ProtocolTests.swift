import CofferTestSupport
import Foundation
import Testing

/// The programs that keep their passwords in `secret`, each the real one, against a real server.
@Suite struct ProtocolTests {
  private static let directory = (#filePath as NSString).deletingLastPathComponent + "/Protocols"

  /// Runs a script of `Protocols`, which prints `done` where all it expects has come to pass.
  private func run(_ script: String, _ argument: String = "", in sandbox: Sandbox) throws {
    let result = try sandbox.shell(
      "PYTHONDONTWRITEBYTECODE=1 PYTHONPATH= python3 \(Self.directory)/\(script) \(argument)")
    #expect(result.status == 0 && result.outputText == "done\n", "\(result.outputText)\n\(result.errorText)")
  }

  @Test func gitAsksOnceForAPassword() throws {
    try run("git.py", "'!secret git-credential'", in: try Sandbox())
  }

  @Test func gitFindsTheHelperByItsName() throws {
    let sandbox = try Sandbox()
    #expect(try sandbox.shell("ln -s secret ../bin/git-credential-secret").status == 0)
    try run("git.py", "secret", in: sandbox)
  }

  @Test func pipGetsAnIndexsPasswordFromKeyring() throws {
    let sandbox = try Sandbox()
    #expect(try sandbox.shell("ln -s secret ../bin/keyring").status == 0)
    try run("pip.py", in: sandbox)
  }
}
