import CofferTestSupport
import Foundation
import Testing

/// Prompts and output on a terminal, and the state of the terminal afterwards.
@Suite struct PromptTests {
  private let sandbox: Sandbox

  init() throws {
    sandbox = try Sandbox()
  }

  private func initialize() throws {
    #expect(try sandbox.shell("secret init").status == 0)
  }

  private func value(_ name: String) throws -> String {
    try sandbox.shell("secret get \(name)").outputText
  }

  @Test func aValueIsEnteredTwiceAndNotShown() throws {
    try initialize()
    let terminal = try Pseudoterminal("secret set a", in: sandbox)
    try terminal.wait(for: "Value of a: ")
    #expect(!terminal.echoes)
    terminal.type("hunter2\n")
    try terminal.wait(for: "Repeat the value: ")
    #expect(!terminal.echoes)
    terminal.type("hunter2\n")
    #expect(try terminal.end() == 0)
    #expect(terminal.echoes)
    #expect(!terminal.seen.contains("hunter2"))
    #expect(try value("a") == "hunter2")
  }

  @Test(arguments: [("n", 77, "one"), ("y", 0, "")] as [(String, Int32, String)])
  func aLowerHistoryLimitAsksBeforeItErases(_ answer: String, _ status: Int32, _ earlier: String) throws {
    try initialize()
    #expect(try sandbox.shell("printf one | secret set a; printf two | secret set a").status == 0)
    let terminal = try Pseudoterminal("secret history-limit --versions 0", in: sandbox)
    try terminal.wait(for: "This erases earlier versions: 1.")
    terminal.type("\(answer)\n")
    #expect(try terminal.end() == status)
    #expect(try sandbox.shell("secret get a --version 2").outputText == earlier)
    #expect(try value("a") == "two")
  }

  @Test(arguments: [("n", 77), ("y", 0)] as [(String, Int32)])
  func trustSaysWhatItUndoesAndAsksForOnePassphrase(_ answer: String, _ status: Int32) throws {
    try passphraseVault()
    let vault = "\(sandbox.directory)/home/data/coffer/default.vault"
    let change = "export COFFER_PASSPHRASE_FILE=p; cp \(vault) old; printf 1 | secret set a; cp old \(vault)"
    #expect(try sandbox.shell("umask 077; printf 'correct horse' > p; \(change)").status == 0)
    let terminal = try Pseudoterminal("secret trust", in: sandbox)
    try terminal.wait(for: "Passphrase for \(vault): ")
    terminal.type("correct horse\n")
    try terminal.wait(for: "is at change 1, and change 2 was seen before. If you trust it")
    try terminal.wait(for: "Trust it as it is now? [y/N] ")
    terminal.type("\(answer)\n")
    #expect(try terminal.end() == status)
    #expect(try sandbox.shell("COFFER_PASSPHRASE_FILE=p secret list").status == (status == 0 ? 0 : 65))
  }

  /// A removed key opens the copy. The user trusts the copy only at its path, or as the vault from now on.
  @Test(arguments: ["vault", "copy", ""]) func trustAsksWhetherACopyIsTheVaultFromNowOn(_ answer: String)
    throws
  {
    let prepared = try sandbox.shell(
      """
      umask 077; secret init --vault v && printf 1 | secret --vault v set a && cp v copy && secret --vault v rekey
      printf 2 | secret --vault v set a; cp copy third
      """)
    try #require(prepared.status == 0, "\(prepared.errorText)")
    let terminal = try Pseudoterminal("secret --vault copy trust", in: sandbox)
    try terminal.wait(for: "Trust it as it is now? [y/N] ")
    terminal.type("y\n")
    try terminal.wait(for: "Is it the vault from now on, at every path, or a copy")
    terminal.type("\(answer)\n")
    // An empty answer decides nothing.
    #expect(try terminal.end() == (answer.isEmpty ? 77 : 0))
    #expect(try sandbox.shell("secret --vault copy get a").outputText == (answer.isEmpty ? "" : "1"))
    // Another copy under the same key.
    #expect(try sandbox.shell("secret --vault third get a").status == (answer == "vault" ? 0 : 65))
    #expect(try sandbox.shell("secret --vault v get a").outputText == "2")
  }

  /// The question is asked on the device even if the copy comes through a pipe.
  @Test(arguments: ["secret merge other", "cat other | secret merge -"], ["y", "n"])
  func mergeShowsWhatComesAndAsks(_ command: String, _ answer: String) throws {
    let prepared = try sandbox.shell(
      """
      secret init 2> /dev/null && printf 1 | secret set a && cp "$XDG_DATA_HOME/coffer/default.vault" other
      printf 3 | secret set theirs --vault other; printf 2 | secret set ours; secret remove --purge a --vault other
      """)
    try #require(prepared.status == 0, "\(prepared.errorText)")
    let terminal = try Pseudoterminal(command, in: sandbox)
    try terminal.wait(for: "erased\tsecret\ta")
    try terminal.wait(for: "Merge it? [y/N] ")
    terminal.type("\(answer)\n")
    #expect(try terminal.end() == (answer == "y" ? 0 : 77))
    let names = Set(try sandbox.shell("secret list").outputText.split(separator: "\n"))
    #expect(names == (answer == "y" ? ["ours", "theirs"] : ["a", "ours"]))
  }

  @Test func aWrongPassphraseCanBeEnteredAgain() throws {
    try passphraseVault()
    let terminal = try Pseudoterminal("secret list && echo listed", in: sandbox)
    try terminal.wait(for: "Passphrase for ")
    terminal.type("wrong\n")
    try terminal.wait(for: "It does not open the vault. Try again (2 left). Passphrase for ")
    #expect(!terminal.echoes)
    terminal.type("wrong\n")
    try terminal.wait(for: "Try again (1 left). ")
    terminal.type("correct horse\n")
    try terminal.wait(for: "listed")
    #expect(try terminal.end() == 0)

    let refused = try Pseudoterminal("secret list", in: sandbox)
    for text in ["Passphrase for ", "(2 left)", "(1 left)"] {
      try refused.wait(for: text)
      refused.type("wrong\n")
    }
    #expect(try refused.end() == 77)
    #expect(refused.seen.contains("No key opens the vault") && !refused.seen.contains("wrong"))
  }

  @Test func aTerminalIsNoDescriptorForAPassphrase() throws {
    try passphraseVault()
    let terminal = try Pseudoterminal("COFFER_PASSPHRASE_FD=0 secret list", in: sandbox)
    #expect(try terminal.end() == 78)
    #expect(terminal.seen.contains("COFFER_PASSPHRASE_FD names a terminal, which would show what is typed."))
  }

  @Test func aLostKeyFileIsMadeAgainWithThePassphrase() throws {
    try initialize()
    let lose = "printf passphrase | secret key add --passphrase && rm ../home/config/coffer/key"
    #expect(try sandbox.shell(lose).status == 0)
    #expect(try sandbox.shell("secret list").status == 78)
    let terminal = try Pseudoterminal("secret key add --key-file ../home/config/coffer/key", in: sandbox)
    try terminal.wait(for: "Passphrase for ")
    terminal.type("passphrase\n")
    #expect(try terminal.end() == 0)
    #expect(!terminal.seen.contains("another key file"))
    #expect(try sandbox.shell("secret list").status == 0)
  }

  @Test func theFirstUseInAWorkTreeNamesThePolicy() throws {
    try initialize()
    let clone = "mkdir -p clone/.git && touch clone/.git/HEAD && cp ../home/data/coffer/default.vault clone/V"
    #expect(try sandbox.shell("\(clone) && chmod 600 clone/V").status == 0)
    for isFirst in [true, false] {
      let terminal = try Pseudoterminal("secret --vault clone/V list", in: sandbox)
      #expect(try terminal.end() == 0)
      #expect(
        terminal.seen.contains("is in a git work tree, so earlier states of it are accepted") == isFirst)
    }
  }

  @Test func doctorFindsNothingWrongIfThePassphraseCanBeAskedFor() throws {
    let create = "umask 077; printf passphrase > p; COFFER_PASSPHRASE_FILE=p secret init --passphrase"
    #expect(try sandbox.shell(create).status == 0)
    #expect(try sandbox.shell("secret doctor").status == 77)
    let terminal = try Pseudoterminal("secret doctor", in: sandbox)
    #expect(try terminal.end() == 0)
    #expect(terminal.seen.contains("commands will prompt for the passphrase"))
  }

  @Test func twoDifferentEntriesStoreNothing() throws {
    try initialize()
    let terminal = try Pseudoterminal("secret set a", in: sandbox)
    try terminal.wait(for: "Value of a: ")
    terminal.type("hunter2\n")
    try terminal.wait(for: "Repeat the value: ")
    terminal.type("hunter3\n")
    #expect(try terminal.end() == 64)
    #expect(terminal.seen.contains("The two entries differ. Nothing was changed."))
    #expect(!terminal.seen.contains("hunter"))
    #expect(try sandbox.shell("secret get a").status == 1)
  }

  @Test func anEmptyEntryStoresNothing() throws {
    try initialize()
    let empty = try Pseudoterminal("secret set a", in: sandbox)
    try empty.wait(for: "Value of a: ")
    empty.type("\n")
    #expect(try empty.end() == 64)
    let ended = try Pseudoterminal("secret set a", in: sandbox)
    try ended.wait(for: "Value of a: ")
    ended.type("\u{4}")
    #expect(try ended.end() == 130)
    #expect(ended.echoes)
    #expect(try sandbox.shell("secret get a").status == 1)
  }

  @Test(arguments: [(SIGINT, "\u{3}"), (SIGQUIT, "\u{1C}"), (SIGTERM, ""), (SIGHUP, "")])
  func aSignalEndsThePromptAndRestoresTheEcho(_ signal: Int32, _ key: String) throws {
    try initialize()
    let terminal = try Pseudoterminal("exec secret set a", in: sandbox)
    try terminal.wait(for: "Value of a: ")
    #expect(!terminal.echoes)
    terminal.type("half")
    if key.isEmpty { kill(terminal.process, signal) } else { terminal.type(key) }
    #expect(try terminal.end() == -signal)
    #expect(terminal.echoes)
    #expect(!terminal.seen.contains("half"))
  }

  @Test func aStoppedPromptRestoresTheTerminalAndPromptsAgain() throws {
    try initialize()
    // The terminal does not stop an orphaned process group, so the shell must remain as the parent.
    let terminal = try Pseudoterminal("set -m; secret set a; echo stopped; fg; true", in: sandbox)
    try terminal.wait(for: "Value of a: ")
    #expect(!terminal.echoes)
    terminal.type("half\u{1A}")
    try terminal.wait(for: "stopped")
    try terminal.wait(for: "Value of a: ")
    #expect(!terminal.echoes)
    terminal.type("hunter2\n")
    try terminal.wait(for: "Repeat the value: ")
    terminal.type("hunter2\n")
    #expect(try terminal.end() == 0)
    #expect(terminal.echoes)
    #expect(try value("a") == "hunter2")
  }

  @Test func aLineThatTheTerminalTruncatesIsRefused() throws {
    try initialize()
    let terminal = try Pseudoterminal("secret set a", in: sandbox)
    try terminal.wait(for: "Value of a: ")
    terminal.type(String(repeating: "x", count: 5000) + "\n")
    #expect(try terminal.end() == 64)
    #expect(terminal.seen.contains("so the terminal cut it off"))
    #expect(try sandbox.shell("secret get a").status == 1)
  }

  @Test func theLongestLineIsReadCompletely() throws {
    try initialize()
    let text = String(repeating: "x", count: 4094)
    let terminal = try Pseudoterminal("secret set a", in: sandbox)
    try terminal.wait(for: "Value of a: ")
    terminal.type(text + "\n")
    try terminal.wait(for: "Repeat the value: ")
    terminal.type(text + "\n")
    #expect(try terminal.end() == 0)
    #expect(try value("a") == text)
  }

  @Test func promptsUseTheTerminalAndNotThePipes() throws {
    try passphraseVault()
    let terminal = try Pseudoterminal(
      "printf piped | secret set a >out 2>err; secret get a > value", in: sandbox)
    for _ in 1...2 {
      try terminal.wait(for: "Passphrase for \(sandbox.directory)/home/data/coffer/default.vault: ")
      #expect(!terminal.echoes)
      terminal.type("correct horse\n")
    }
    #expect(try terminal.end() == 0)
    #expect(try sandbox.shell("cat value out err").outputText == "piped")
    #expect(!terminal.seen.contains("horse"))
  }

  @Test func aVaultWithoutAPassphraseCausesNoPrompt() throws {
    try initialize()
    #expect(try sandbox.shell("rm ../home/config/coffer/config.toml").status == 0)
    let terminal = try Pseudoterminal("secret get a", in: sandbox)
    #expect(try terminal.end() == 77)
    #expect(!terminal.seen.contains("Passphrase"))
  }

  @Test func promptsCanBeDisabled() throws {
    try passphraseVault()
    for command in [
      "secret get a", "secret set a", "secret init --vault V --passphrase", "secret key recover",
    ] {
      let terminal = try Pseudoterminal("COFFER_NO_PROMPT=1 \(command)", in: sandbox)
      #expect(try terminal.end() != 0)
      #expect(!terminal.seen.contains(": \r\n"), "\(terminal.seen)")
      #expect(terminal.seen.hasPrefix("secret: "))
    }
  }

  private func passphraseVault() throws {
    let terminal = try Pseudoterminal("secret init --passphrase", in: sandbox)
    try terminal.wait(for: "New passphrase for ")
    #expect(!terminal.echoes)
    terminal.type("correct horse\n")
    try terminal.wait(for: "Repeat the passphrase: ")
    terminal.type("correct horse\n")
    #expect(try terminal.end() == 0)
  }

  @Test func aTerminalGetsALineFeedAndNoControlCharacters() throws {
    try initialize()
    #expect(
      try sandbox.shell("printf hunter2 | secret set plain; printf 'a\\033[31m' | secret set colour").status
        == 0)
    #expect(
      try sandbox.shell("printf '\\377' | secret set binary; printf 'x\\n\\n' | secret set ended").status == 0
    )
    func seen(_ command: String) throws -> (String, Int32) {
      let terminal = try Pseudoterminal(command, in: sandbox)
      let status = try terminal.end()
      return (terminal.seen, status)
    }
    #expect(try seen("secret get plain") == ("hunter2\r\n", 0))
    #expect(try seen("secret get -n plain") == ("hunter2", 0))
    #expect(try seen("secret get ended") == ("x\r\n\r\n", 0))
    #expect(try seen("secret get --force colour") == ("a\u{1B}[31m\r\n", 0))
    for name in ["colour", "binary"] {
      let (text, status) = try seen("secret get \(name)")
      #expect(status == 64)
      #expect(text.contains("The value contains control characters, invisible characters or binary data."))
      #expect(!text.contains("\u{1B}"))
    }
    #expect(try sandbox.shell("printf x | secret set \"$(printf 'n\\033[31m')\"").status == 0)
    #expect(try seen("secret list n") == ("n\\u{1B}[31m\r\n", 0))
  }

  @Test func aValueThatCannotBeStoredIsNotPromptedFor() throws {
    let terminal = try Pseudoterminal("secret --vault nosuch set a", in: sandbox)
    #expect(try terminal.end() == 66)
    #expect(!terminal.seen.contains("Value"))
  }
}
