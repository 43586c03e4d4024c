internal import ArgumentParser
internal import Coffer
internal import FoundationEssentials

struct KeyListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "list", of: "secret key", abstract: "Print the vault's key slots.",
    discussion: """
      Each line has the beginning of the slot's id, its kind, the day of its creation, and its label, separated by tabs. \
      Without a key the slots are printed, but not verified. If the vault is refused, a message says why, and the status \
      is not 0.
      """
  )

  @OptionGroup(title: "Global options") var global: GlobalOptions
  @OptionGroup(title: "Global options") var format: JSONOption

  private struct Slot: Encodable {
    let id: String
    let kind: String
    let created: Date
    let label: String
    let memory: Int?
    let passes: Int?
    let recipient: String?
  }

  func run() throws {
    let vault = try global.openVault(requirement: "Only a vault has key slots")
    let slots = try VaultBackend.describe(path: vault.path).keySlots
    try format.print(
      slots.map { slot in
        Slot(
          id: slot.id, kind: slot.kindName, created: slot.created, label: slot.label,
          memory: slot.cost?.memory, passes: slot.cost?.passes, recipient: slot.recipient?.description)
      },
      or: slots.map { slot in
        let day = slot.created.formatted(.iso8601.year().month().day())
        return "\(slot.shortID)\t\(slot.kindName)\t\(day)\t\(slot.label.printable)\n"
      }.joined())
    if let weakness = slots.quantumWeakness { inform(weakness) }
    do throws(SecretError) { _ = try vault.withoutPrompts.identifiers(inService: "") } catch {
      if error.code == .locked { return }
      throw SecretError(
        error.code, "The key slots of \(vault.path) are not verified: \(error.reason)", advice: error.advice)
    }
  }
}
