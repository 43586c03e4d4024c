internal import ArgumentParser
internal import Coffer

struct KeyRemoveCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove",
    abstract: "Remove a key slot, and encrypt the vault again.",
    discussion: """
      A person who had the removed key may have kept the master key, so the vault gets a new one. This requires a \
      credential for each remaining slot: from the vault's credential sources, from --key-file, or from a prompt.
      """
  )

  @OptionGroup(title: "Global options") var global: GlobalOptions

  @Argument(help: "The beginning of the slot's id, as key list prints it.")
  var id: String

  @Option(
    parsing: .singleValue,
    help: ArgumentHelp("The key file of a remaining slot. Repeat for more.", valueName: "path"),
    completion: .file()
  )
  var keyFile: [String] = []

  func run() throws {
    let editor = try KeySlotEditor(global.backend, keyFiles: keyFile)
    let slot = try editor.slot(id)
    let remaining = editor.description.keySlots.filter { $0.id != slot.id }
    if remaining.isEmpty {
      throw Failure(
        .refused,
        "This is the vault's last key slot, and nothing else opens the vault. Add another one first: secret key add"
      )
    }
    let credentials = try editor.credentials(of: remaining)
    try Progress.during("Encrypting the vault …") {
      try editor.vault.removeKeySlots(ids: [slot.id], credentials: credentials)
    }
    editor.forgetKeptKey()
    note("Removed the key slot \(slot.summary). It still opens earlier copies of the vault.")
  }
}
