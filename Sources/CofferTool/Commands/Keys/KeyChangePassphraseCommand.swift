internal import ArgumentParser
internal import Coffer

struct KeyChangePassphraseCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "change-passphrase", of: "secret key", abstract: "Replace a passphrase.",
    discussion: """
      The new passphrase is entered twice on a terminal, or comes from a pipe. The vault gets a new master key as well, \
      if the credential of every other key slot is at hand without a prompt. Otherwise a message says that whoever has \
      the old passphrase and an old copy can read what is stored later: then run secret rekey.
      """)

  @OptionGroup(title: "Global options") var global: GlobalOptions
  @OptionGroup(title: "Global options") var format: JSONOption

  @Argument(
    help: "The beginning of the slot's id, if the vault has several passphrases.",
    completion: CompletedValue.keySlots.kind)
  var id: String?

  @OptionGroup var cost: NewPassphrase

  func run() throws {
    let editor = try KeySlotEditor(global, cost.vaultOptions(isUsed: true))
    let opened = try editor.vault.openKeySlots()
    let slots = editor.description.keySlots.filter { $0.kind == .passphrase }
    guard let slot = try id.map(editor.slot) ?? slots.first else {
      throw Failure.usage("The vault has no passphrase. Add one: secret key add --passphrase")
    }
    guard slots.contains(slot) else {
      throw Failure.usage("The key slot \(slot.summary) has no passphrase. Choose another: secret key list")
    }
    if id == nil && slots.count > 1 {
      let list = slots.map(\.summary).joined(separator: ", ")
      throw Failure.usage("The vault has several passphrases: \(list). Select one by its id.")
    }
    let missing = editor.description.keySlots.filter {
      $0.id != slot.id && !opened.ids.contains($0.id) && $0.recipient == nil
    }
    let new = try editor.vault.replaceKeySlot(
      id: slot.id, with: .passphrase(try editor.newPassphrase()), opened: missing.isEmpty ? opened : nil)
    changed("The passphrase was changed.")
    if missing.isEmpty { editor.noteNewMasterKey() }
    inform("Changed the passphrase. Its key slot is now \(new.summary).")
    if missing.isEmpty {
      inform("The vault has a new master key. The old passphrase opens only earlier copies of the vault.")
      try editor.printNewPin(format)
    } else {
      try format.print(["newMasterKey": false])
      note(
        """
        The master key stays, because a new one needs the credentials of \(missing.map(\.summary).joined(separator: ", ")). \
        Whoever has the old passphrase and an earlier copy of the vault can read what you store from now on. To prevent \
        that, run secret rekey.
        """)
    }
  }
}
