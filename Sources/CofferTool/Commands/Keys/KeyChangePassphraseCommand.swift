internal import ArgumentParser
internal import Coffer

struct KeyChangePassphraseCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "change-passphrase", of: "secret key", abstract: "Replace a passphrase.",
    discussion: """
      The new passphrase is entered twice on a terminal, or comes from a pipe. If someone may know the old passphrase \
      and have a copy of the vault, run secret rekey as well.
      """
  )

  @OptionGroup(title: "Global options") var global: GlobalOptions

  @Argument(
    help: "The beginning of the slot's id, if the vault has several passphrases.",
    completion: CompletedValue.keySlots.kind)
  var id: String?

  func run() throws {
    let editor = try KeySlotEditor(global.backend)
    try editor.vault.unlock()
    let slots = editor.description.keySlots.filter { $0.kind == .passphrase }
    let slot: VaultKeySlot
    if let id {
      slot = try editor.slot(id)
      guard slots.contains(slot) else {
        throw Failure.usage("The key slot \(slot.summary) has no passphrase. Choose another: secret key list")
      }
    } else {
      guard let only = slots.first else {
        throw Failure.usage("The vault has no passphrase. Add one: secret key add --passphrase")
      }
      guard slots.count == 1 else {
        let list = slots.map(\.summary).joined(separator: ", ")
        throw Failure.usage("The vault has several passphrases: \(list). Select one by its id.")
      }
      slot = only
    }
    let new = try editor.vault.replaceKeySlot(id: slot.id, with: .passphrase(try editor.newPassphrase()))
    note("Changed the passphrase. Its key slot is now \(new.summary).")
  }
}
