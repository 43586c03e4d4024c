internal import CofferCore
internal import CofferVaultFormat
internal import FoundationEssentials

/// A record of a merge, and the entry of a file that has its value.
final class MergedRecord {
  var record: Record
  let entry: BlockEntry
  let vault: VaultSnapshot

  /// The same change in the other file.
  var twin: MergedRecord?
  /// Whether the ancestor has the same change.
  var isOfAncestor = false
  /// Whether the other file has or had it.
  var isKnown = false
  /// Whether only the ancestor has it, and not the other file.
  var isLeftOut = false
  /// Whether it gets a new sequence.
  var isNew = false
  /// Whether the merge stores it again, as a change of its own.
  var isStored = false
  /// The time of the merge, if it takes the place of its own.
  var newTime: Int64?
  /// Whether it is the newest one of its file, or in conflict with the newest.
  var isHead = false
  /// Whether the other side has not replaced it. Only heads stand.
  var stands = false
  /// The sequence of the merge's newest record, if this one is in conflict with it.
  var conflict: Int?
  /// Whether the merge leaves out its field *keeps nothing*.
  var isUnmarked = false

  init(_ entry: BlockEntry, in vault: VaultSnapshot) {
    (record, self.entry, self.vault) = (entry.record, entry, vault)
  }

  var isShared: Bool { twin != nil }
  var isNews: Bool { !isKnown && !isLeftOut }
  var isKept: Bool { isShared || isNews }
  var hasOrigin: Bool { record.origin != nil }
  /// Of a record of ours: whether theirs no longer has it. Theirs had it, or the ancestor has it.
  var isGone: Bool { !isShared && (isKnown || isOfAncestor) }

  /// Of two heads that stand, that with the higher rank is the newest.
  var rank: (isPut: Int, time: Int64, sequence: Int, tag: Bytes16) {
    let (own, other) = (record, (twin ?? self).record)
    let higher = (own.sequence, own.valueTag) < (other.sequence, other.valueTag) ? other : own
    return (isRemoval ? 0 : 1, time, higher.sequence, higher.valueTag)
  }

  /// Whether both are the same change, with the same value.
  func isSame(as other: MergedRecord) throws(SecretError) -> Bool {
    if time != other.time { return false }
    if record.bytes == other.record.bytes { return true }
    return try change() == other.change()
  }

  /// Whether both have the same value.
  func hasValue(of other: MergedRecord) throws(SecretError) -> Bool {
    try change().value == other.change().value
  }

  /// What is equal in all records of one change, and in no others.
  struct Change: Hashable {
    let record: [UInt8]
    let value: SecretFingerprint?
  }

  /// Reads the value, once.
  func change() throws(SecretError) -> Change {
    if let known { return known }
    let key = SecretBytes(encode(record.id))
    let value = isRemoval ? nil : try vault.value(of: entry, for: entry.record.identifier()).fingerprint(under: key)
    let change = Change(record: try record.change(), value: value)
    known = change
    return change
  }
  private var known: Change?
}

extension MergedRecord: HistoryRecord {
  var number: Int { record.sequence }
  var date: Date { Timestamp.date(record.time) }
  var metadata: SecretMetadata { BlockEntry(record: record, valueOffset: 0).metadata }
  var isRemoval: Bool { record.kind == .remove }
  var time: Int64 { record.time }
  var keepsNothing: Bool { record.keepsNothing }
  func lost(to newest: MergedRecord) -> Bool {
    !newest.isRemoval && record.conflict == newest.record.sequence
  }
}

extension Array<MergedRecord> {
  /// From the last record on that keeps nothing.
  var remembered: [MergedRecord] { Array(self[(lastIndex(where: \.keepsNothing) ?? 0)...]) }

  /// Those in conflict with the newest record that is not left out, and that one as the last.
  var heads: [MergedRecord] {
    guard let newest = last(where: { !$0.isLeftOut }) else { return [] }
    return filter { $0.lost(to: newest) } + [newest]
  }

  /// Whether the newest record is the same change as the newest of `others`.
  func hasNewest(of others: [MergedRecord]) throws(SecretError) -> Bool {
    guard let one = last, let two = others.last else { return isEmpty && others.isEmpty }
    return try one.isSame(as: two)
  }

  /// The records with those of `others` that are the same change: with the same sequence, or with an origin.
  func twins(
    in others: [MergedRecord]
  ) throws(SecretError) -> [(one: MergedRecord, other: MergedRecord)] {
    if others.isEmpty { return [] }
    var free = Dictionary(others.map { ($0.record.sequence, $0) }, uniquingKeysWith: { one, _ in one })
    var (found, left): ([(MergedRecord, MergedRecord)], [MergedRecord]) = ([], [])
    for one in self {
      if let other = free[one.record.sequence], try one.isSame(as: other) {
        found.append((one, other))
        free[one.record.sequence] = nil
      } else {
        left.append(one)
      }
    }
    if left.isEmpty { return found }
    var paired: Set<Int> = []
    for (hasOrigin, otherHas) in [(true, false), (false, true), (true, true)] {
      let mine = left.filter { $0.hasOrigin == hasOrigin && !paired.contains($0.record.sequence) }
      let candidates = others.filter { $0.hasOrigin == otherHas && free[$0.record.sequence] === $0 }
      // Only values of one time are read and compared.
      let times = Set(mine.map(\.time)).intersection(candidates.map(\.time))
      var alike: [MergedRecord.Change: [MergedRecord]] = [:]
      for other in candidates.reversed() where times.contains(other.time) {
        alike[try other.change(), default: []].append(other)
      }
      for one in mine where times.contains(one.time) {
        guard let other = alike[try one.change()]?.popLast() else { continue }
        found.append((one, other))
        free[other.record.sequence] = nil
        paired.insert(one.record.sequence)
      }
    }
    return found
  }
}
