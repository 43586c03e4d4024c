import CofferCore
import CofferVaultFormat

@testable import CofferVault

// Parts of a vault as the vectors have them.

extension Vector {
  /// A number and bytes in hexadecimal: a change, or a field.
  struct Pair: Decodable, Equatable {
    let number: Int
    let bytes: String

    init(_ change: Checkpoint) { (number, bytes) = (change.sequence, change.tailTag.hex) }
    init(_ field: TaggedField) { (number, bytes) = (Int(field.type), field.content.hex) }
    init(from decoder: any Decoder) throws {
      var container = try decoder.unkeyedContainer()
      (number, bytes) = (try container.decode(Int.self), try container.decode(String.self))
    }
  }

  /// A history limit with the change that set it.
  struct HistorySetting: Decodable, Equatable {
    let versions, days, sequence: Int
    let origin: Pair?

    init(_ setting: CofferVaultFormat.HistorySetting) {
      (versions, days) = (setting.limit.versions, setting.limit.days)
      (sequence, origin) = (setting.sequence, setting.origin.map(Pair.init))
    }
  }
}

extension Vector.FormerSlot {
  init(_ slot: FormerKeySlot) {
    self.init(
      slotId: slot.id.hex, type: slot.type, isTrace: slot.isTrace ? 1 : 0, recipient: slot.recipient.hex,
      created: slot.created, removed: slot.sequence, removedTime: slot.removed, label: slot.label)
  }
}

extension Vector.Leases {
  /// `nil` if the page is zeros.
  init?(_ page: LeasePage) {
    if page.counter == 0 { return nil }
    counter = page.counter
    held = page.leases.sorted { $0.key < $1.key }
      .map { Lease(lookupId: $0.hex, taking: $1.taking.hex, end: $1.end) }
  }
}

extension Array {
  var unlessEmpty: Self? { isEmpty ? nil : self }
}

extension [UInt8] {
  var hex: String { map { $0.hexadecimal.lowercased() }.joined() }
}
