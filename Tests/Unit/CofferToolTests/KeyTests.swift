import CofferCore
import CofferTestSupport
import Foundation
import Testing

@testable import CofferTool

/// Changes of key slots on a terminal.
@Suite struct KeyTests {
  private let sandbox: Sandbox

  init() throws {
    sandbox = try Sandbox()
    #expect(
      try sandbox.shell("secret init && printf x | secret set a && echo old phrase | secret key add --passphrase")
        .status == 0)
  }

  private func slots() throws -> [String] {
    try sandbox.shell("secret key list | cut -f1").outputText.split(separator: "\n").map(String.init)
  }

  @Test func aMissingCredentialIsPromptedFor() throws {
    #expect(try sandbox.shell("secret key add --key-file K2").status == 0)
    let ids = try slots()
    let terminal = try Pseudoterminal("secret key remove \(ids[2])", in: sandbox)
    try terminal.wait(for: "Passphrase of the key slot \(ids[1]) (passphrase): ")
    #expect(!terminal.echoes)
    terminal.type("old phrase\n")
    #expect(try terminal.end() == 0)
    #expect(try slots().count == 2)
    #expect(
      try sandbox.shell(
        "umask 077; echo old phrase > p; rm ../home/config/coffer/config.toml; COFFER_PASSPHRASE_FILE=p secret get a"
      )
      .outputText == "x")
  }

  @Test func aWrongPassphraseChangesNothing() throws {
    let before = try Data(contentsOf: vault)
    let terminal = try Pseudoterminal("secret rekey", in: sandbox)
    try terminal.wait(for: "Passphrase of the key slot ")
    terminal.type("wrong\n")
    #expect(try terminal.end() == 77)
    #expect(try Data(contentsOf: vault) == before)
  }

  @Test func aPassphraseIsPromptedForOnlyOnce() throws {
    #expect(try sandbox.shell("rm -r ../home/config").status == 0)
    let terminal = try Pseudoterminal(
      "secret --backend vault key remove \(try sandbox.shell("secret --backend vault key list | sed -n 1p | cut -f1").outputText)",
      in: sandbox)
    try terminal.wait(for: "Passphrase for ")
    terminal.type("old phrase\n")
    #expect(try terminal.end() == 0)
    #expect(terminal.seen.components(separatedBy: "Passphrase").count == 2)
  }

  @Test func aNewPassphraseIsEnteredTwice() throws {
    let terminal = try Pseudoterminal("secret key change-passphrase", in: sandbox)
    try terminal.wait(for: "New passphrase for ")
    terminal.type("new phrase\n")
    try terminal.wait(for: "Repeat the passphrase: ")
    terminal.type("new phrase\n")
    #expect(try terminal.end() == 0)
    #expect(
      try sandbox.shell(
        "umask 077; echo new phrase > p; rm ../home/config/coffer/config.toml; COFFER_PASSPHRASE_FILE=p secret get a"
      )
      .outputText == "x")
  }

  private var vault: URL { URL(fileURLWithPath: "\(sandbox.directory)/home/data/coffer/default.vault") }

  @Test(arguments: [
    "coffer-key-v1:%", "%", "coffer-key-v1: %", "coffer-key-v1:\n%\n",
  ]) func aRecoveryKeyIsParsedWithAnyWhiteSpace(_ form: String) throws {
    let key = try sandbox.shell("cat ../home/config/coffer/key").outputText
    let body = key.dropFirst("coffer-key-v1:".count).dropLast()
    let spaced = body.enumerated().map { "\($0 % 5 == 4 ? " \t\n" : "")\($1)" }.joined()
    let expected = try RecoveryKey.parse(SecretBytes(key))
    for text in [String(body), spaced] {
      let parsed = try RecoveryKey.parse(SecretBytes(form.replacingOccurrences(of: "%", with: text)))
      let isSame = parsed.isEqual(to: expected)
      #expect(isSame)
    }
  }
}
