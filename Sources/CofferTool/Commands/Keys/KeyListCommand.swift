internal import ArgumentParser
internal import Coffer
internal import FoundationEssentials

struct KeyListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "list", of: "secret key", abstract: "Print the vault's key slots.",
    discussion: """
      Each line has the beginning of the slot's id, its kind, the day of its creation, its label, and the beginning of its \
      recipient, separated by tabs. --json has whole recipients. Without a key the slots are printed, but not verified. If \
      the vault is refused, a message says why, and the status is not 0. --members also prints the slots that were \
      removed, with the day, and requires a key.
      """)

  @OptionGroup(title: "Global options") var global: GlobalOptions
  @OptionGroup(title: "Global options") var format: JSONOption

  @Flag(help: "Print the slots that were removed, too: everybody who can open the vault, or could.")
  var members = false

  func run() throws {
    let vault = try global.openVault(requirement: "Only a vault has key slots", to: .examine)
    let slots = try vault.description().keySlots
    var refusal: SecretError?
    do throws(SecretError) { _ = try vault.withoutPrompts.identifiers(inService: "") } catch {
      refusal = error
    }
    let former = members ? try vault.formerKeySlots() : []
    let all = slots.map { ($0, nil) } + former.map { ($0.slot, $0 as FormerVaultKeySlot?) }
    try format.print(
      all.map { slot, former -> JSONObject in
        [
          "id": slot.id, "kind": slot.kindName, "created": slot.created, "label": slot.label,
          "memory": slot.cost?.memory, "passes": slot.cost?.passes,
          "recipient": former != nil && slot.recipient?.isPostQuantum == true
            ? slot.recipient?.shortened : slot.recipient?.description,
          "verified": refusal == nil, "removed": former?.removed, "newMasterKey": former?.hasNewMasterKey,
        ]
      },
      or: all.map { slot, former in
        let removal = former.map { "\(slot.recipient == nil ? "\t" : "")\tremoved \($0.removed.day)" }
        return "\(slot.line)\(removal ?? "")\n"
      }.joined())
    if let weakness = slots.quantumWeakness { inform(weakness) }
    guard let refusal else { return }
    if refusal.code == .locked {
      return note(
        "The key slots are not verified, because no key at hand opened the vault: somebody may have changed what is printed."
      )
    }
    throw SecretError(
      refusal.code, "The key slots of \(vault.path) are not verified: \(refusal.reason)",
      advice: refusal.advice, remedy: refusal.remedy)
  }
}
