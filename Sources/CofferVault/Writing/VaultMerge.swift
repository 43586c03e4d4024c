public import CofferCore
internal import CofferVaultFormat
public import FoundationEssentials

/// How two copies of a vault become one. `VaultMerging` specifies the rules, whose numbers are given here.
struct VaultMerge {
  let ours, theirs: VaultSnapshot
  private let ancestor: VaultSnapshot?
  private let takesBack: Bool
  /// The time of the changes that take something back, or keep it.
  private let time: Int64
  /// The states that each file shows: in ascending order, and as a set.
  private let states: (ours: [Checkpoint], theirs: [Checkpoint])
  private let shown: (ours: Set<Checkpoint>, theirs: Set<Checkpoint>)
  /// The highest state that both show.
  private let parted: Checkpoint
  /// The sequence up to which both files agree.
  private let agreed: Int

  /// The records of each secret that the merge has, in the order of the lookup ids.
  private(set) var secrets: [[MergedRecord]] = []
  private(set) var report = MergeReport()
  /// The highest sequence of the merge, before its root.
  private(set) var lastSequence: Int

  /// Merges both copies. `theirs` and `ancestor` have the vault id and the keys of `ours`. Throws `.rolledBack` if no
  /// state is shown by both, and `.tampered`.
  init(
    _ ours: VaultSnapshot, _ theirs: VaultSnapshot, ancestor: VaultSnapshot?, takingBack: Bool, time: Int64
  ) throws(SecretError) {
    (self.ours, self.theirs, self.ancestor, takesBack, self.time) = (ours, theirs, ancestor, takingBack, time)
    states = (try ours.shownChanges(), try theirs.shownChanges())
    shown = (Set(states.ours), Set(states.theirs))
    guard let parted = shown.ours.intersection(shown.theirs).max() else {
      throw .partedTooLongAgo(path: theirs.file.path)
    }
    self.parted = parted
    let floor = max(ours.base.recent.floor, theirs.base.recent.floor)
    let first = shown.ours.symmetricDifference(shown.theirs).lazy.map(\.sequence).filter { $0 >= floor }.min()
    let common = shown.ours.intersection(shown.theirs).lazy.map(\.sequence).filter { $0 >= floor }
    agreed = common.filter { $0 < first ?? .max }.max() ?? 0
    lastSequence = max(ours.state.sequence, theirs.state.sequence)

    let (mine, others) = (try ours.mergedRecords(), try theirs.mergedRecords())
    let before = try ancestor?.mergedRecords() ?? [:]
    for id in Set(mine.keys).union(others.keys).sorted() {
      try merge(mine[id] ?? [], others[id] ?? [], before[id] ?? [])
    }
  }

  // MARK: One secret

  /// Adds the merge of the records of one secret, which are `before` in the ancestor.
  private mutating func merge(
    _ mine: [MergedRecord], _ others: [MergedRecord], _ before: [MergedRecord]
  ) throws(SecretError) {
    if let last = mine.last, last.record.sequence <= agreed, !mine.contains(where: { $0.record.conflict != nil }),
      mine.elementsEqual(others, by: { $0.record.hasBytes(of: $1.record) })
    {
      return secrets.append(mine)
    }
    let (ours, theirs) = (mine.remembered, others.remembered)
    for (one, other) in try ours.twins(in: theirs) { (one.twin, other.twin) = (other, one) }
    defer { for one in ours + theirs { one.twin = nil } }
    for records in [ours, theirs] {
      for (one, _) in try records.twins(in: before.remembered) { one.isOfAncestor = true }
    }
    compare(ours, shown.theirs)
    compare(theirs, shown.ours)
    for one in theirs { one.isLeftOut = one.isOfAncestor && !one.isKnown }
    if let one = theirs.first(where: \.isLeftOut) { report.leftOut.append(try one.record.identifier()) }
    let heads = (ours: ours.heads, theirs: theirs.heads)
    for one in heads.ours + heads.theirs { one.isHead = true }
    for one in heads.ours + heads.theirs { one.stands = one.isNews || one.twin?.isHead ?? false }
    // Rules 1 to 3 and 8. Then rule 4.
    let taken = report.count
    var all = try takenBack(ours, theirs, heads)
    if all == nil { all = try joined(ours, theirs, heads) }
    var found: [MergedRecord] = []
    for one in all ?? [] where !one.isRemoval || found.last?.isRemoval == false { found.append(one) }
    // Rules 5 to 7.
    for (one, next) in zip(found, found.dropFirst()) where one.isNew { next.isNew = true }
    let newest = found.last
    let number = newest?.isNew == true ? lastSequence + found.count(where: \.isNew) : newest?.record.sequence
    var lost: [MergedRecord] = []
    for one in found.dropLast() where one.stands && !one.isRemoval && newest?.isRemoval == false {
      if let newest, try !one.hasValue(of: newest) { lost.append(one) }
    }
    for one in lost { one.conflict = number }
    if let newest, !lost.isEmpty,
      !(lost + [newest]).allSatisfy({ ($0.vault === self.ours ? $0 : $0.twin)?.isHead ?? false })
    {
      report.conflicts.append(try newest.record.identifier())
    }
    if ancestor != nil, report.count == taken, try !before.remembered.hasNewest(of: theirs),
      let one = (mine + others).last
    {
      report.untouched.append(try one.record.identifier())
    }
    for one in found {
      if one.isNew { lastSequence += 1 }
      let keepsNothing = one.keepsNothing && !one.isUnmarked
      if !one.isNew, one.conflict == one.record.conflict, keepsNothing == one.keepsNothing { continue }
      let origin = one.record.origin ?? (one.isNew ? state(of: one) : nil)
      one.record = try one.record.merged(
        one.isNew ? lastSequence : one.record.sequence, conflict: one.conflict, keepsNothing: keepsNothing,
        origin: one.isStored ? nil : origin, time: one.newTime)
    }
    if !found.isEmpty { secrets.append(found) }
  }

  /// Finds what a file that shows the states `shown` makes of the records of the other one.
  private func compare(_ records: [MergedRecord], _ shown: Set<Checkpoint>) {
    for one in records {
      one.isNew = one.record.sequence > agreed || one.twin.map { $0.record.sequence != one.record.sequence } ?? false
      let isKnown = one.isShared || one.record.sequence <= parted.sequence
      one.isKnown = isKnown || one.record.origin.map(shown.contains) ?? false
    }
  }

  /// All records of ours, if theirs takes the secret back.
  private mutating func takenBack(
    _ ours: [MergedRecord], _ theirs: [MergedRecord], _ heads: (ours: [MergedRecord], theirs: [MergedRecord])
  ) throws(SecretError) -> [MergedRecord]? {
    let present = heads.theirs.last.flatMap { $0.isRemoval ? nil : $0 }
    guard let newest = heads.ours.last, newest.isGone, !heads.theirs.contains(where: \.isNews),
      !newest.isRemoval || present != nil
    else { return nil }
    let name = try newest.record.identifier()
    report.takenBack.append(MergeReport.Change(name, present, at: newest.date))
    if !takesBack {
      for one in ours where one.isKnown && !one.isShared { (one.isNew, one.isStored) = (true, true) }
      for one in heads.ours { one.stands = true }
      if newest.isStored { newest.newTime = heads.ours.dropLast().reduce(time) { max($0, $1.time) } }
      return ours
    }
    for one in heads.ours where one.isGone { one.stands = false }
    if heads.ours.contains(where: \.stands) { return nil }
    let record =
      if let present {
        try present.record.merged(
          0, conflict: nil, keepsNothing: present.keepsNothing, origin: nil, time: nil)
      } else {
        try Record(
          removing: name, id: newest.record.id, sequence: 0, time: Timestamp.date(time),
          keepsNothing: theirs.isEmpty && newest.isKnown)
      }
    let added = MergedRecord((present ?? newest).entry, in: (present ?? newest).vault)
    (added.record, added.isNew, added.isStored, added.newTime) = (record, true, true, time)
    return ours + [added]
  }

  /// What is kept of both, with the best of the heads that stand as the newest record.
  private mutating func joined(
    _ ours: [MergedRecord], _ theirs: [MergedRecord], _ heads: (ours: [MergedRecord], theirs: [MergedRecord])
  ) throws(SecretError) -> [MergedRecord] {
    let standing = heads.ours.filter(\.stands) + heads.theirs.filter { $0.stands && !$0.isShared }
    guard var newest = standing.first else {
      let kept = ours.filter(\.isKept)
      return kept.isEmpty || kept.last === ours.last ? kept : kept + ours.suffix(1)
    }
    for one in standing where newest.rank < one.rank { newest = one }
    let isOurs = newest.vault === self.ours
    if !isOurs {
      let name = try newest.record.identifier()
      report.changes.append(MergeReport.Change(name, newest.isRemoval ? nil : newest, at: newest.date))
    }
    let news = (isOurs ? theirs : ours).filter(\.isNews)
    let kept = (isOurs ? ours : theirs).filter { $0.isKept && $0 !== newest }
    // A removal stays behind the value that it removes.
    let end = kept.dropLast(newest.isRemoval ? 1 : 0).count
    let result = kept[..<end] + news + kept[end...] + [newest]
    let isMoved = newest !== (isOurs ? heads.ours : heads.theirs).last
    if isMoved { newest.isNew = true }
    if !news.isEmpty || isMoved {
      for one in result { one.isUnmarked = true }
    }
    return Array(result)
  }

  /// The lowest state of the file of `one` that has its change.
  private func state(of one: MergedRecord) -> Checkpoint {
    let states = one.vault === ours ? states.ours : states.theirs
    return states[states.partitioningIndex { $0.sequence >= one.record.sequence }]
  }

  // MARK: The rest of the file

  /// Whether ours shows the state of theirs.
  var isOlder: Bool { shown.ours.contains(theirs.state.checkpoint) }
  /// Whether theirs shows the state of ours.
  var isLater: Bool { shown.theirs.contains(ours.state.checkpoint) }

  /// The key slots that the vault has then.
  func slots(of outcome: MergeReport.Outcome) -> [KeySlot] {
    let (mine, others) = (ours.file.header.slots, theirs.file.header.slots)
    if outcome == .replaced { return others }
    func removed(_ slot: KeySlot, by vault: VaultSnapshot) -> Bool {
      slot.isKnown && vault.base.settings.formerSlots.contains { $0.id == slot.id }
    }
    let all =
      mine.filter { others.has($0) || !removed($0, by: theirs) }
      + others.filter { !isOlder && !mine.has($0) && !removed($0, by: ours) }
    return all.filter { slot in
      slot.recipient == nil || !all.contains { $0.recipient == slot.recipient && $0.id < slot.id }
    }
  }

  /// Adds to `report` what the vault becomes with these slots and this limit.
  func describe(_ slots: [KeySlot], _ limit: HistoryLimit, in report: inout MergeReport) {
    func without(_ other: [KeySlot], _ slots: [KeySlot]) -> [VaultKeySlot] {
      slots.enumerated().filter { !other.has($0.element) }.map { VaultKeySlot($0.element, at: $0.offset) }
    }
    let mine = ours.file.header.slots
    (report.addedSlots, report.removedSlots) = (without(mine, slots), without(slots, mine))
    report.historyLimit = limit == ours.base.settings.history ? nil : limit
    let own = mine.first { $0.id == ours.keys.slot }
    report.locksOut =
      own.map { own in !slots.has(own) && !slots.contains { $0.recipient != nil && $0.recipient == own.recipient } }
      ?? false
  }

  /// The known slots of both that neither lists as removed.
  var unlistedSlots: [KeySlot] {
    let former = (ours.base.settings.formerSlots + theirs.base.settings.formerSlots).map(\.id)
    var ids = Set(former)
    return (ours.file.header.slots + theirs.file.header.slots).filter { $0.isKnown && ids.insert($0.id).inserted }
  }

  /// The history limit of the merge.
  var historyLimit: HistoryLimit {
    let (one, two) = (ours.base.settings.history, theirs.base.settings.history)
    if one == two { return one }
    if let ancestor, ancestor.state.checkpoint == parted {
      let former = ancestor.base.settings.history
      if former == one { return two }
      if former == two { return one }
    }
    let days = one.days == 0 || two.days == 0 ? 0 : max(one.days, two.days)
    return HistoryLimit(versions: max(one.versions, two.versions), days: days) ?? one
  }

  /// The changes that the root of the merge lists, and the sequence from which on they are complete.
  var recentChanges: ([Checkpoint], floor: Int) {
    let isWhole = report.leftOut.isEmpty
    let changes = isWhole ? shown.ours.union(shown.theirs).sorted() : states.ours
    let floor = max(ours.base.recent.floor, isWhole ? theirs.base.recent.floor : 0)
    return Checkpoint.latest(Layout.maximumRecentChanges, of: changes, floor: floor)
  }
}

/// What a merge found.
public struct MergeReport: Sendable {
  /// What became of the vault.
  public enum Outcome: Sendable {
    /// The other copy is older, or the same. Nothing was changed.
    case unchanged
    /// The other copy goes on from the vault, and took its place.
    case replaced
    /// The vault has the changes of both.
    case merged
  }

  /// What theirs has of one secret.
  public struct Change: Sendable {
    /// The name of the secret.
    public let identifier: SecretIdentifier
    /// The metadata of the value that theirs has, or `nil` if it has none.
    public let metadata: SecretMetadata?
    /// When theirs changed the secret, or, if it takes it back, when ours did.
    public let date: Date

    init(_ identifier: SecretIdentifier, _ value: MergedRecord?, at date: Date) {
      (self.identifier, metadata, self.date) = (identifier, value?.metadata, date)
    }
  }

  /// The secrets that are as theirs has them, because theirs changed them.
  public internal(set) var changes: [Change] = []
  /// The secrets that both files changed to different values.
  public internal(set) var conflicts: [SecretIdentifier] = []
  /// The secrets that theirs changed, or lost, without a change that says so.
  public internal(set) var takenBack: [Change] = []
  /// The secrets of which a change of theirs is left out, because the ancestor has it and ours does not.
  public internal(set) var leftOut: [SecretIdentifier] = []
  /// The key slots that theirs has added, and those that it has removed.
  public internal(set) var addedSlots: [VaultKeySlot] = []
  public internal(set) var removedSlots: [VaultKeySlot] = []
  /// Whether the key that opened the vault is among the removed ones.
  public internal(set) var locksOut = false
  /// The history limit, if it becomes another one.
  public internal(set) var historyLimit: HistoryLimit?
  /// The secrets that are not the same in theirs and the ancestor, and of which nothing was taken.
  var untouched: [SecretIdentifier] = []
  /// Whether theirs and the ancestor have other key slots: an ancestor decides nothing about them.
  var hasOtherSlots = false
  /// Whether theirs and the ancestor differ in something that was not taken, as in a revert that cannot undo all.
  package var isPartial: Bool { outcome == .unchanged || hasOtherSlots || !untouched.isEmpty }
  fileprivate var count: Int { changes.count + conflicts.count + takenBack.count }
  /// What was done.
  public internal(set) var outcome = Outcome.merged
  /// The pins of the vault and of the copy, both from before the merge.
  var pins: [String] = []
  /// The pin of the copy in the state that was merged.
  public var pin: String { pins.last ?? "" }
}

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
  /// Whether it counts as stored by the merge.
  var isStored = false
  /// The time of the merge, if it takes the place of its own.
  var newTime: Int64?
  /// Whether it is the newest one of its file, or in conflict with that.
  var isHead = false
  /// Whether it is a head that the other side has not replaced.
  var stands = false
  /// The sequence of the newest record of the merge, if it is in conflict with that.
  var conflict: Int?
  /// Whether it must not say that it keeps nothing.
  var isUnmarked = false

  init(_ entry: BlockEntry, in vault: VaultSnapshot) {
    (record, self.entry, self.vault) = (entry.record, entry, vault)
  }

  var isShared: Bool { twin != nil }
  var isNews: Bool { !isKnown && !isLeftOut }
  var isKept: Bool { isShared || isNews }
  var hasOrigin: Bool { record.origin != nil }
  /// Whether ours has it, and theirs had it or the ancestor has.
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

  func hasValue(of other: MergedRecord) throws(SecretError) -> Bool {
    try change().value == other.change().value
  }

  /// What all records of one change have in common, so that they can be looked up.
  struct Change: Hashable {
    let time: Int64
    let record: [UInt8]
    let value: SecretFingerprint?
  }

  func change() throws(SecretError) -> Change {
    if let known { return known }
    let key = SecretBytes(encode(record.id))
    let value = isRemoval ? nil : try vault.value(of: entry, for: entry.record.identifier()).fingerprint(under: key)
    let change = Change(time: time, record: try record.change(), value: value)
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
  fileprivate var remembered: [MergedRecord] { Array(self[(lastIndex(where: \.keepsNothing) ?? 0)...]) }

  /// The newest record that is not left out, last, and those in conflict with it.
  fileprivate var heads: [MergedRecord] {
    guard let newest = last(where: { !$0.isLeftOut }) else { return [] }
    return filter { !$0.isLeftOut && $0.lost(to: newest) } + [newest]
  }

  /// Whether the newest record is the same change as the newest of `others`.
  fileprivate func hasNewest(of others: [MergedRecord]) throws(SecretError) -> Bool {
    guard let one = last, let two = others.last else { return isEmpty && others.isEmpty }
    return try one.isSame(as: two)
  }

  /// The records with those of `others` that are the same change. Those with the same sequence come first; among those
  /// without an origin, there are no others.
  fileprivate func twins(
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
      let times = Set(mine.map(\.time))
      var alike: [MergedRecord.Change: [MergedRecord]] = [:]
      for other in others.reversed() where other.hasOrigin == otherHas && times.contains(other.time) {
        if free[other.record.sequence] === other { alike[try other.change(), default: []].append(other) }
      }
      let common = Set(alike.keys.map(\.time))
      for one in mine where common.contains(one.time) {
        guard let other = alike[try one.change()]?.popLast() else { continue }
        found.append((one, other))
        free[other.record.sequence] = nil
        paired.insert(one.record.sequence)
      }
    }
    return found
  }
}

extension Array<KeySlot> {
  fileprivate func has(_ slot: KeySlot) -> Bool {
    contains { slot.isKnown ? $0.isKnown && $0.id == slot.id : $0.bytes == slot.bytes }
  }
}

extension VaultSnapshot {
  /// The records of each secret, by the lookup id.
  fileprivate func mergedRecords() throws(SecretError) -> [Bytes16: [MergedRecord]] {
    var all: [Bytes16: [MergedRecord]] = [:]
    try forEachSecret { records in all[records[0].record.id] = records.map { MergedRecord($0, in: self) } }
    return all
  }
}
