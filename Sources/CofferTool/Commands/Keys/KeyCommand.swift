internal import ArgumentParser

struct KeyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "key", abstract: "List and change the vault's key slots.",
    discussion:
      "A vault has up to 16 key slots. Each holds a key or a passphrase that opens the whole vault.",
    subcommands: [
      KeyListCommand.self, KeyAddCommand.self, KeyRemoveCommand.self, KeyChangePassphraseCommand.self,
      KeyRecoverCommand.self,
    ]
  )
}
