internal import ArgumentParser
internal import Coffer

struct KeyRemoveCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "remove", of: "secret key", abstract: "Remove key slots, and encrypt the vault again.",
    discussion: """
      A person who had a removed key may have kept the master key, so the vault gets a new one. This requires a \
      credential for each remaining slot, except those of recipients: from the vault's credential sources, from \
      --key-file, or from a prompt. A slot that is removed requires none: slots whose credentials are lost can be removed \
      together. Prints the new pin, and how many secrets the removed key could read.
      """)

  @OptionGroup(title: "Global options") var global: GlobalOptions
  @OptionGroup(title: "Global options") var format: JSONOption

  @Argument(
    help: "The beginnings of the slots' ids, as key list prints them.",
    completion: CompletedValue.keySlots.kind)
  var ids: [String]

  @Option(path: "The key file of a remaining slot. Repeat for more.")
  var keyFile: [String] = []

  func run() throws {
    let editor = try KeySlotEditor(global)
    let removedIDs = Set(try ids.map { try editor.slot($0).id })
    let removed = editor.description.keySlots.filter { removedIDs.contains($0.id) }
    let remaining = editor.description.keySlots.filter { !removedIDs.contains($0.id) }
    if remaining.isEmpty {
      throw Failure(
        .refused, "No key slot would remain, and nothing else opens the vault. Add another one first: secret key add")
    }
    let opened = try editor.open(remaining, keyFiles: keyFile)
    try Progress.during("Encrypting the vault …") {
      try editor.vault.removeKeySlots(ids: removedIDs, opened: opened)
    }
    editor.noteNewMasterKey()
    for slot in removed {
      inform("Removed the key slot \(slot.summary). It still opens earlier copies of the vault.")
    }
    if opened.ids.isSubset(of: removedIDs) { note("No credential at hand opens the vault any more.") }
    try editor.printNewPin(format, removed: removed)
  }
}
