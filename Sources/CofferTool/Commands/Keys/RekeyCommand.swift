internal import ArgumentParser
internal import Coffer

struct RekeyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "rekey", abstract: "Encrypt the vault again, with a new master key.",
    discussion: """
      Keeps the key slots. This requires a credential for each, except those of recipients: from the vault's credential \
      sources, from --key-file, or from a prompt. Earlier copies of the vault do not change. Prints the new pin.
      """)

  @OptionGroup(title: "Global options") var global: GlobalOptions
  @OptionGroup(title: "Global options") var format: JSONOption

  @Option(path: "The key file of a slot. Repeat for more.")
  var keyFile: [String] = []

  func run() throws {
    let editor = try KeySlotEditor(global)
    let opened = try editor.open(editor.description.keySlots, keyFiles: keyFile)
    try Progress.during("Encrypting the vault …") { try editor.vault.rekey(opened: opened) }
    editor.noteNewMasterKey()
    inform("The vault is encrypted with a new master key.")
    try editor.printNewPin(format)
  }
}
