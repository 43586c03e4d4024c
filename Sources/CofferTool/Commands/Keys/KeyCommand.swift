internal import ArgumentParser

struct KeyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "key", abstract: "List and change the vault's key slots.",
    discussion:
      "A vault has up to 240 key slots. Each is for a key, a passphrase or a recipient, which opens the whole vault.",
    subcommands: [
      KeyListCommand.self, KeyNewCommand.self, KeyAddCommand.self, KeyRemoveCommand.self,
      KeyChangePassphraseCommand.self, KeyRecoverCommand.self,
    ])
}
