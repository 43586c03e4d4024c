internal import ArgumentParser
internal import Coffer
internal import FoundationEssentials

struct KeyListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "list", of: "secret key", abstract: "Print the vault's key slots.",
    discussion: """
      Each line has the beginning of the slot's id, its kind, the day of its creation, and its label, separated by tabs.
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
  }

  func run() throws {
    let path = try global.backend.openVault(requirement: "Only a vault has key slots").path
    let slots = try VaultBackend.describe(path: path).keySlots
    if format.json {
      return try Output.standard.json(
        slots.map { slot in
          Slot(
            id: slot.id, kind: slot.kindName, created: slot.created, label: slot.label,
            memory: slot.cost?.memory, passes: slot.cost?.passes)
        })
    }
    for slot in slots {
      let day = slot.created.formatted(.iso8601.year().month().day())
      try Output.standard.write("\(slot.shortID)\t\(slot.kindName)\t\(day)\t\(slot.label.printable)\n")
    }
  }
}
