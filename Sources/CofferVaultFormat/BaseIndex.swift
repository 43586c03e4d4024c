package import CofferCore

/// The root of the base: the settings of the vault, the changes before it, and the list of the blocks.
package struct BaseIndex: Sendable {
  /// The entry of a block.
  package struct Entry: Sendable {
    /// The position of the first item.
    package var first: VersionPosition
    package var offset: Int
    /// The length of the sealed block.
    package var length: Int
    package var itemCount: Int
    package var tag: Bytes16

    package init(first: VersionPosition, offset: Int, length: Int, itemCount: Int, tag: Bytes16) {
      (self.first, self.offset, self.length) = (first, offset, length)
      (self.itemCount, self.tag) = (itemCount, tag)
    }

    package var end: Int { offset + length }
  }

  /// The location of the list of changes before the root.
  package struct Recent: Sendable {
    /// The sequence from which on the list is complete.
    package var floor: Int
    /// The length of the sealed list; 0 if there is none.
    package var length = 0
    package var tag = Bytes16.zero

    package init(floor: Int, length: Int = 0, tag: Bytes16 = .zero) {
      (self.floor, self.length, self.tag) = (floor, length, tag)
    }
  }

  /// What a rewrite carries over from one file to the next.
  package struct Settings: Sendable {
    /// The 32 bytes of the key under which names are hashed to lookup ids.
    package let lookupKey: [UInt8]
    package var history: HistorySetting
    /// The sealed keys by which former master keys are recognised, or `nil` if the vault has had only one.
    package var lineage: [UInt8]?
    /// The key slots that were removed, the latest last.
    package var formerSlots: [FormerKeySlot] = []
    /// The changes that merges took without the others of their branch: the first sequence of each, and the tag of the
    /// lowest state that had it.
    package var taken: [Checkpoint] = []
    /// Fields that this version does not know.
    fileprivate var others: [TaggedField] = []

    package init(lookupKey: [UInt8], history: HistoryLimit) {
      (self.lookupKey, self.history) = (lookupKey, HistorySetting(history, sequence: 1))
    }
  }

  private enum FieldType {
    static let history: UInt16 = 1
    static let lineage: UInt16 = 2
    static let formerSlots: UInt16 = 3
    static let taken: UInt16 = 4
  }

  /// The sequence of the rewrite that wrote the base.
  package var sequence: Int
  package var settings: Settings
  package var recent: Recent
  package var entries: [Entry] = []

  package init(sequence: Int, settings: Settings, recent: Recent) {
    (self.sequence, self.settings, self.recent) = (sequence, settings, recent)
  }

  /// Parses the root of a base that fills the file from `start` to `rootOffset`. Throws `.tampered`, and
  /// `.unsupportedVersion` for an unknown critical field.
  package init(parsing bytes: [UInt8], start: Int, rootOffset: Int) throws(SecretError) {
    var reader = ByteReader(bytes, part: "the root")
    sequence = try reader.sequence()
    let lookupKey = try reader.array(32)
    recent = Recent(floor: try reader.sequence())
    recent.tag = try reader.bytes16()
    recent.length = Int(try reader.u32())
    let count = Int(try reader.u32())
    let listLength = recent.length == 0 ? 0 : recent.length - Layout.sealOverhead
    guard recent.floor <= sequence, recent.length == 0 || listLength > 0, listLength % Checkpoint.length == 0,
      listLength / Checkpoint.length <= Layout.maximumRecentChanges,
      (recent.length == 0) == (recent.floor == sequence), recent.length > 0 || recent.tag == .zero
    else { throw reader.failure("contradicts itself") }
    settings = try Self.settings(&reader, lookupKey: lookupKey, sequence: sequence)
    let end = rootOffset - recent.length
    entries.reserveCapacity(min(count, Layout.maximumPartLength / Layout.rootEntryLength))
    for _ in 0..<count {
      let entry = Entry(
        first: VersionPosition(id: try reader.bytes16(), sequence: try reader.sequence()),
        offset: try reader.number(), length: Int(try reader.u32()), itemCount: Int(try reader.u32()),
        tag: try reader.bytes16())
      guard entry.itemCount > 0, entry.length > Layout.sealOverhead,
        entry.length <= Layout.maximumPartLength + Layout.sealOverhead,
        entry.offset >= entries.last?.end ?? start, entries.last.map({ $0.first < entry.first }) ?? true
      else { throw reader.failure("has entries that contradict each other") }
      entries.append(entry)
    }
    try reader.expectEnd()
    guard (entries.last?.end ?? start) == end else { throw reader.failure("does not add up") }
  }

  private static func settings(
    _ reader: inout ByteReader, lookupKey: [UInt8], sequence: Int
  ) throws(SecretError) -> Settings {
    var settings = Settings(lookupKey: lookupKey, history: .none)
    settings.others = try reader.taggedFields(FieldType.history...FieldType.taken) {
      type, field throws(SecretError) in
      switch type {
      case FieldType.history:
        let (versions, days) = (Int(try field.u16()), Int(try field.u16()))
        let number = try field.sequence()
        guard let limit = HistoryLimit(versions: versions, days: days), number <= sequence else {
          throw field.failure("has a history limit out of bounds")
        }
        let origin = field.isAtEnd ? nil : try field.checkpoint()
        settings.history = HistorySetting(limit, sequence: number, origin: origin)
      case FieldType.lineage:
        let lineage = Array(field.bytes[try field.rest()])
        let keys = lineage.count - Layout.sealOverhead
        guard keys > 0, keys % 32 == 0, keys / 32 <= Layout.maximumLineage else {
          throw field.failure("has a lineage of a wrong length")
        }
        settings.lineage = lineage
      case FieldType.taken:
        settings.taken = try field.checkpoints()
        guard (1...Layout.maximumRecentChanges).contains(settings.taken.count) else {
          throw field.failure("has too many or no taken changes")
        }
      default:
        repeat {
          let slot = try FormerKeySlot(parsing: &field)
          guard slot.sequence >= settings.formerSlots.last?.sequence ?? 0, slot.sequence <= sequence else {
            throw field.failure("has former key slots out of order")
          }
          settings.formerSlots.append(slot)
        } while !field.isAtEnd
        guard settings.formerSlots.count <= Layout.maximumFormerKeySlots else {
          throw field.failure("has too many former key slots")
        }
      }
    }
    return settings
  }

  package var bytes: [UInt8] {
    var fields = [TaggedField(FieldType.history, settings.history.bytes)]
    if let lineage = settings.lineage { fields.append(TaggedField(FieldType.lineage, lineage)) }
    if !settings.formerSlots.isEmpty {
      fields.append(TaggedField(FieldType.formerSlots, settings.formerSlots.flatMap(\.bytes)))
    }
    if !settings.taken.isEmpty {
      let pairs = settings.taken.flatMap { encode($0.sequence, $0.tailTag) }
      fields.append(TaggedField(FieldType.taken, pairs))
    }
    fields += settings.others.filter { !$0.isLeftOut }
    let prefix = encode(
      sequence, settings.lookupKey, recent.floor, recent.tag, UInt32(recent.length), UInt32(entries.count),
      sized(fields))
    return entries.reduce(into: prefix) { bytes, entry in
      bytes += encode(
        entry.first.id, entry.first.sequence, entry.offset, UInt32(entry.length), UInt32(entry.itemCount),
        entry.tag)
    }
  }
}

/// The history limit of a vault, and the change that set it.
package struct HistorySetting: Equatable, Sendable {
  package let limit: HistoryLimit
  /// The sequence of the root that had it first.
  package let sequence: Int
  /// As that of a record, if a merge has moved it.
  package let origin: Checkpoint?

  package init(_ limit: HistoryLimit, sequence: Int, origin: Checkpoint? = nil) {
    (self.limit, self.sequence, self.origin) = (limit, sequence, origin)
  }

  var bytes: [UInt8] {
    let bytes = encode(UInt16(limit.versions), UInt16(limit.days), sequence)
    return origin.map { bytes + encode($0.sequence, $0.tailTag) } ?? bytes
  }
}

extension [BaseIndex.Entry] {
  /// Returns the index of the only entry that can have the newest version of `id`, or `nil` if `id` comes before the
  /// first.
  package func index(for id: Bytes16) -> Int? {
    let next = partitioningIndex { $0.first.id > id }
    return next == 0 ? nil : next - 1
  }
}

/// A key slot that was removed.
package struct FormerKeySlot: Sendable {
  package let id: Bytes16
  package let type: UInt8
  /// Whether the master key has stayed the same since. A merge needs this: a copy under the same master key may have
  /// the slot still.
  package var isTrace: Bool
  /// The first 32 bytes of the recipient; zeros if the slot had none.
  package let recipient: [UInt8]
  /// When the slot was made and removed, in milliseconds since 1970.
  package let created, removed: Int64
  /// The change that removed the slot.
  package let sequence: Int
  package let label: String

  private static let recipientLength = 32

  package init(_ slot: KeySlot, isTrace: Bool, sequence: Int, time: Int64) {
    (id, type, self.isTrace) = (slot.id, slot.bytes.first ?? 0, isTrace)
    recipient = slot.parameters?.recipient.map { Array($0.prefix(Self.recipientLength)) } ?? zeros(Self.recipientLength)
    (created, removed, self.sequence, label) = (slot.created, time, sequence, slot.label)
  }

  init(parsing reader: inout ByteReader) throws(SecretError) {
    (id, type) = (try reader.bytes16(), try reader.u8())
    let mark = try reader.u8()
    guard mark <= 1 else { throw reader.failure("has a former key slot with an unknown mark") }
    isTrace = mark == 1
    recipient = try reader.array(Self.recipientLength)
    (created, sequence, removed) = (try reader.i64(), try reader.sequence(), try reader.i64())
    label = try reader.slotLabel()
  }

  package var bytes: [UInt8] {
    encode(id, type, UInt8(isTrace ? 1 : 0), recipient, created, sequence, removed, UInt8(label.utf8.count), label)
  }
}
