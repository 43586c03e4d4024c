internal import CofferCore
internal import CofferVaultFormat
internal import FoundationEssentials

/// A record of a merge, and the entry of a file that has its value.
final class MergedRecord {
  private(set) var record: Record
  let entry: BlockEntry
  let copy: MergedCopy
  /// Which change it is, in whatever file.
  let birth: Birth

  /// The same change in the other file.
  var twin: MergedRecord?
  /// Whether the other file has or had it.
  var isKnown = false
  /// Whether the ancestor has it, and ours does not know it.
  var isLeftOut = false
  /// Whether it gets a new sequence.
  var isNew = false
  /// Whether what its field *keeps nothing* was to drop is dropped already.
  var isUnmarked = false

  init(_ entry: BlockEntry, in copy: MergedCopy) {
    (record, self.entry, self.copy) = (entry.record, entry, copy)
    birth = copy.birth(entry.record.sequence, entry.record.origin)
  }

  /// A change of the merge itself: `record`, with the value of `entry`.
  init(_ record: Record, valueOf entry: BlockEntry, in copy: MergedCopy) {
    (self.record, self.entry, self.copy, isNew) = (record, entry, copy, true)
    birth = Birth(sequence: 0, tag: nil)
  }

  var isNews: Bool { !isKnown && !isLeftOut }
  var isKept: Bool { twin != nil || isNews }

  /// Whether this record or its twin is one of those with these ids.
  func isAmong(_ ids: Set<ObjectIdentifier>) -> Bool {
    ids.contains(ObjectIdentifier(self)) || twin.map { ids.contains(ObjectIdentifier($0)) } ?? false
  }

  /// Of two heads that stand, that with the higher rank is the newest.
  var rank: (isPut: Int, time: Int64, sequence: Int, tag: Bytes16) {
    (isRemoval ? 0 : 1, time, birth.sequence, birth.tag ?? .zero)
  }

  /// Whether both have the same value.
  func hasValue(of other: MergedRecord) throws(SecretError) -> Bool {
    if twin === other || self === other { return true }
    return try fingerprint(as: self) == other.fingerprint(as: self)
  }

  /// The fingerprint that the value would have in `secret`.
  func fingerprint(as secret: MergedRecord) throws(SecretError) -> SecretFingerprint {
    let key = SecretBytes(encode(secret.record.id))
    return try copy.vault.value(of: entry, for: entry.record.identifier()).fingerprint(under: key)
  }

  /// Writes down where the record stands in the merge.
  func place(at sequence: Int, conflict: Int?, twin: Int?) throws(SecretError) {
    let isMoved = sequence != record.sequence
    if !isMoved, conflict == record.conflict, twin == record.twin, !(isUnmarked && keepsNothing) { return }
    record = try record.merged(
      sequence, conflict: conflict, twin: twin, hasKeptNothing: isUnmarked,
      origin: isMoved ? birth.origin : record.origin)
  }
}

extension MergedRecord: HistoryRecord {
  var number: Int { record.sequence }
  var date: Date { Timestamp.date(record.time) }
  var metadata: SecretMetadata { BlockEntry(record: record, valueOffset: 0).metadata }
  var isRemoval: Bool { record.kind == .remove }
  var time: Int64 { record.time }
  var keepsNothing: Bool { record.keepsNothing }
  func stands(beside newest: MergedRecord) -> Bool { record.stands(beside: newest.record) }
}

/// Which change a record or a history limit is, whatever sequence merges have given it since.
struct Birth: Hashable {
  /// The sequence that the change had first.
  let sequence: Int
  /// The tag of the lowest state that had the change, or `nil` if its file does not show that state any more.
  let tag: Bytes16?

  /// As a file stores it, or `nil` if the tag is not known.
  var origin: Checkpoint? { tag.map { Checkpoint(sequence: sequence, tailTag: $0) } }
}

/// One of the files of a merge, and the states that it shows.
final class MergedCopy {
  let vault: VaultSnapshot
  /// In ascending order.
  let states: [Checkpoint]
  let shown: Set<Checkpoint>
  let tags: Set<Bytes16>
  private let taken: Set<Checkpoint>
  /// The records of each secret that count, by the lookup id.
  private(set) var secrets: [Bytes16: [MergedRecord]] = [:]

  init(_ vault: VaultSnapshot) throws(SecretError) {
    (self.vault, states) = (vault, try vault.shownChanges())
    (shown, tags, taken) = (Set(states), Set(states.map(\.tailTag)), Set(vault.base.settings.taken))
    try vault.forEachSecret { records in
      let start = records.lastIndex(where: \.record.keepsNothing) ?? 0
      secrets[records[0].record.id] = records[start...].map { MergedRecord($0, in: self) }
    }
  }

  var floor: Int { vault.base.recent.floor }

  func birth(_ sequence: Int, _ origin: Checkpoint?) -> Birth {
    if let origin { return Birth(sequence: origin.sequence, tag: origin.tailTag) }
    let state = sequence < floor ? nil : states[states.partitioningIndex { $0.sequence >= sequence }]
    return Birth(sequence: sequence, tag: state?.tailTag)
  }

  /// Whether this file has or had a change of the other file. The two parted at the sequence `parted`.
  func knows(_ birth: Birth, at sequence: Int, parted: Int) -> Bool {
    sequence <= parted || birth.tag.map(tags.contains) ?? false || birth.origin.map(taken.contains) ?? false
  }
}

extension Array<MergedRecord> {
  /// The newest record that is not left out, as the last, and those that stand beside it or beside the last of all.
  var heads: [MergedRecord] {
    guard let last, let newest = self.last(where: { !$0.isLeftOut }) else { return [] }
    return filter { $0 === newest || !$0.isLeftOut && ($0.stands(beside: newest) || $0.stands(beside: last)) }
  }

  var puts: [MergedRecord] { heads.filter { !$0.isRemoval } }

  var ids: Set<ObjectIdentifier> { Set(map(ObjectIdentifier.init)) }

  private struct Change: Hashable {
    let isRemoval: Bool
    let birth: Birth
    var time: Int64?
  }

  /// The records that are the same change as one of `others`, each with that one.
  func pairs(with others: [MergedRecord]) -> [(one: MergedRecord, other: MergedRecord)] {
    if isEmpty || others.isEmpty { return [] }
    func placed(_ one: MergedRecord) -> Change {
      Change(isRemoval: one.isRemoval, birth: Birth(sequence: one.birth.sequence, tag: nil), time: one.time)
    }
    func born(_ one: MergedRecord) -> Change { Change(isRemoval: one.isRemoval, birth: one.birth) }
    let byBirth = Dictionary(others.map { (born($0), $0) }) { first, _ in first }
    let byTime = Dictionary(grouping: others, by: placed)
    return compactMap { one in
      if one.birth.tag != nil, let other = byBirth[born(one)] { return (one, other) }
      let other = byTime[placed(one)]?.first { one.birth.tag == nil || $0.birth.tag == nil }
      return other.map { (one, $0) }
    }
  }
}
