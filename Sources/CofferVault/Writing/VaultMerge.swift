public import CofferCore
internal import CofferVaultFormat
public import FoundationEssentials

/// How two copies of a vault become one. `VaultMerging` specifies the rules, whose numbers are given here.
struct VaultMerge {
  let ours, theirs: VaultSnapshot
  private let ancestor: VaultSnapshot?
  /// The sequence of the highest state that both show.
  private let parted: Int
  /// The time of the changes that take something back.
  private let time: Int64
  private let takesBack: Bool
  /// The records of each secret in the other files.
  private let theirRecords: [[MergedRecord]]
  private let ancestorRecords: [Bytes16: [MergedRecord]]

  private(set) var report = MergeReport()
  /// The highest sequence of the merge, before its root.
  private(set) var lastSequence = 0

  /// Compares both copies. `theirs` and `ancestor` have the vault id and the keys of `ours`. Throws `.rolledBack` if no
  /// state is shown by both, and `.tampered`.
  init(
    _ ours: VaultSnapshot, _ theirs: VaultSnapshot, ancestor: VaultSnapshot?, takingBack: Bool, time: Int64
  ) throws(SecretError) {
    (self.ours, self.theirs, self.ancestor, takesBack, self.time) = (ours, theirs, ancestor, takingBack, time)
    guard let parted = try Set(ours.shownChanges()).intersection(theirs.shownChanges()).max() else {
      throw .partedTooLongAgo(path: theirs.file.path)
    }
    self.parted = parted.sequence
    theirRecords = try theirs.mergedRecords()
    ancestorRecords = Dictionary(
      uniqueKeysWithValues: try ancestor?.mergedRecords().map { ($0[0].record.id, $0) } ?? [])
    var (report, last) = (MergeReport(), 0)
    try forEachSecret(&report, &last) { _ in }
    (self.report, lastSequence) = (report, last)
  }

  /// Calls `body` once for each secret, in the order of the lookup ids, with the records that the merge has.
  func forEachSecret(_ body: ([MergedRecord]) throws(SecretError) -> Void) throws(SecretError) {
    var (report, last) = (MergeReport(), 0)
    try forEachSecret(&report, &last, body)
  }

  private func forEachSecret(
    _ report: inout MergeReport, _ last: inout Int, _ body: ([MergedRecord]) throws(SecretError) -> Void
  ) throws(SecretError) {
    last = max(ours.state.sequence, theirs.state.sequence)
    var next = 0
    func merge(_ mine: [MergedRecord], _ others: [MergedRecord]) throws(SecretError) {
      let merged = try self.merged(mine, others, &report, &last)
      // Rule 7.
      var found: [MergedRecord] = []
      for one in merged where !one.isRemoval || found.last?.isRemoval == false { found.append(one) }
      if !found.isEmpty { try body(found) }
    }
    try ours.forEachSecret { records throws(SecretError) in
      while next < theirRecords.count, theirRecords[next][0].record.id < records[0].record.id {
        try merge([], theirRecords[next])
        next += 1
      }
      let isBoth = next < theirRecords.count && theirRecords[next][0].record.id == records[0].record.id
      try merge(records.map { MergedRecord($0, in: ours) }, isBoth ? theirRecords[next] : [])
      if isBoth { next += 1 }
    }
    for records in theirRecords[next...] { try merge([], records) }
  }

  // MARK: One secret

  private func merged(
    _ mine: [MergedRecord], _ others: [MergedRecord], _ report: inout MergeReport, _ last: inout Int
  ) throws(SecretError) -> [MergedRecord] {
    let before = (mine.first ?? others.first).flatMap { ancestorRecords[$0.record.id] } ?? []
    func isOld(_ one: MergedRecord) -> Bool { one.record.sequence <= parted }
    func isKnown(_ one: MergedRecord) throws(SecretError) -> Bool {
      try isOld(one) ? true : one.isAmong(before)
    }
    let added = mine.filter { !isOld($0) }
    if added.isEmpty, mine.elementsEqual(others, by: { $0.record.hasBytes(of: $1.record) }) { return mine }

    func isLeftOut(_ one: MergedRecord) throws(SecretError) -> Bool {
      if isOld(one) { return false }
      return try one.isAmong(before) ? !one.isAmong(mine) : false
    }
    if try !others.keeping(isLeftOut).isEmpty { report.leavesOut = true }
    var hasTheirChange = false
    if let last = others.last { hasTheirChange = try !isKnown(last) }
    let present = others.last.flatMap { $0.isRemoval ? nil : $0 }
    // Rule 8.
    if let newest = mine.last, !newest.isRemoval || present != nil, !hasTheirChange, try isKnown(newest),
      try !newest.isAmong(others)
    {
      let name = try newest.record.identifier()
      report.takenBack.append(MergeReport.Change(name, present, at: newest.date))
      var all = mine
      if takesBack {
        all.append(try takenBack(newest, present, keepsNothing: others.isEmpty && isOld(newest)))
      }
      return try numbered(all, &last, lostTo: takesBack ? nil : newest)
    }
    // Rules 1 to 3.
    let theirOld = others.filter(isOld)
    var kept = try mine.filter(isOld).keeping { one throws(SecretError) in try one.isAmong(theirOld) }
    let theirAdded =
      hasTheirChange ? try others.keeping { one throws(SecretError) in try !isKnown(one) } : []
    if (added + theirAdded).contains(where: \.keepsNothing) { kept = [] }
    // Rule 4.
    let (one, two) = (added.remembered, theirAdded.remembered)
    let (rank, theirRank) = (try Rank(one.last, against: others), try Rank(two.last, against: mine))
    let theirsWins = theirRank.map { theirs in rank.map { $0 < theirs } ?? true } ?? false
    let (losing, won) = theirsWins ? (one, two) : (two, one)
    // Rules 5 and 6.
    let lost = try losing.keeping { one throws(SecretError) in try !one.isAmong(won) }
    var inConflict: MergedRecord?
    if let rank, let theirRank, let loser = losing.last, let winner = won.last, rank.isNews, theirRank.isNews,
      !loser.isRemoval, !winner.isRemoval
    {
      inConflict = loser
      report.conflicts.append(try winner.record.identifier())
    }
    if theirsWins, let winner = won.last, try !winner.isAmong(mine) {
      report.changes.append(
        MergeReport.Change(try winner.record.identifier(), winner.isRemoval ? nil : winner, at: winner.date))
    }
    return try kept
      + numbered(lost + won, &last, lostTo: won.last, losing.last, inConflict, won: lost.isEmpty ? 0 : won.count)
  }

  /// Gives `records` the next sequences. Those that lost to `winner`, or to the same change of the other file, keep the
  /// conflict; `inConflict` gets one. The last `won` come after records of the other file.
  private func numbered(
    _ records: [MergedRecord], _ last: inout Int, lostTo winner: MergedRecord?,
    _ loser: MergedRecord? = nil, _ inConflict: MergedRecord? = nil, won: Int = 0
  ) throws(SecretError) -> [MergedRecord] {
    let newest = last + records.count
    var isSame = false
    if let loser, let winner { isSame = try loser.isSame(as: winner) }
    var result: [MergedRecord] = []
    for var one in records {
      last += 1
      let isMarked = one.keepsNothing && result.count < records.count - won
      var isLost = inConflict.map(one.isStored(like:)) ?? false
      for target in [winner, isSame ? loser : nil] {
        if let target, one.vault === target.vault, one.lost(to: target) { isLost = true }
      }
      one.record = try one.record.renumbered(
        last, conflict: isLost ? newest : one.record.conflict, keepsNothing: isMarked)
      result.append(one)
    }
    return result
  }

  /// The change that takes a secret back to `present`, the value of theirs, or removes it.
  private func takenBack(
    _ newest: MergedRecord, _ present: MergedRecord?, keepsNothing: Bool
  ) throws(SecretError) -> MergedRecord {
    guard var result = present else {
      var removal = newest
      removal.record = try Record(
        removing: newest.record.identifier(), id: newest.record.id, sequence: newest.record.sequence,
        time: Timestamp.date(time), keepsNothing: keepsNothing)
      return removal
    }
    result.record = try result.record.renumbered(
      result.record.sequence, keepsNothing: result.keepsNothing, time: time)
    return result
  }

  // MARK: The rest of the file

  /// The key slots that the merge has.
  var slots: [KeySlot] {
    let (mine, others) = (ours.file.header.slots, theirs.file.header.slots)
    func has(_ list: [KeySlot], _ slot: KeySlot) -> Bool {
      list.contains { slot.isKnown ? $0.isKnown && $0.id == slot.id : $0.bytes == slot.bytes }
    }
    func removed(_ slot: KeySlot, by vault: VaultSnapshot) -> Bool {
      slot.isKnown && vault.base.settings.formerSlots.contains { $0.id == slot.id }
    }
    let all =
      mine.filter { has(others, $0) || !removed($0, by: theirs) }
      + others.filter { !has(mine, $0) && !removed($0, by: ours) }
    return all.filter { slot in
      slot.recipient == nil || !all.contains { $0.recipient == slot.recipient && $0.id < slot.id }
    }
  }

  /// The known slots of both that neither lists as removed.
  var unlistedSlots: [KeySlot] {
    let former = (ours.base.settings.formerSlots + theirs.base.settings.formerSlots).map(\.id)
    var ids = Set(former)
    return (ours.file.header.slots + theirs.file.header.slots).filter { $0.isKnown && ids.insert($0.id).inserted }
  }

  /// The history limit of the merge.
  func historyLimit() throws(SecretError) -> HistoryLimit {
    let (one, two) = (ours.base.settings.history, theirs.base.settings.history)
    if one == two { return one }
    if let ancestor, ancestor.state.sequence >= parted,
      try theirs.shows(ancestor.state.sequence, isTag: { $0 == ancestor.state.tailTag }) == true
    {
      let former = ancestor.base.settings.history
      if former == one { return two }
      if former == two { return one }
    }
    let days = one.days == 0 || two.days == 0 ? 0 : max(one.days, two.days)
    return HistoryLimit(versions: max(one.versions, two.versions), days: days) ?? one
  }

  /// The changes that the root of the merge lists, and the sequence from which on they are complete.
  func recentChanges() throws(SecretError) -> ([Checkpoint], floor: Int) {
    var (changes, floor) = (Set(try ours.shownChanges()), ours.base.recent.floor)
    if !report.leavesOut {
      changes.formUnion(try theirs.shownChanges())
      floor = max(floor, theirs.base.recent.floor)
    }
    return Checkpoint.latest(Layout.maximumRecentChanges, of: changes.sorted(), floor: floor)
  }

  /// What decides which file wins: the higher rank.
  private struct Rank: Comparable {
    /// Whether the other file does not have the change.
    let isNews: Bool
    let isPut: Bool
    let time: Int64
    let sequence: Int
    let tag: Bytes16

    init?(_ newest: MergedRecord?, against others: [MergedRecord]) throws(SecretError) {
      guard let newest else { return nil }
      let record = newest.record
      (isNews, isPut) = (try !newest.isAmong(others), !newest.isRemoval)
      (time, sequence, tag) = (record.time, record.sequence, record.valueTag)
    }

    static func < (left: Self, right: Self) -> Bool {
      if left.isNews != right.isNews { return right.isNews }
      if left.isPut != right.isPut { return right.isPut }
      return (left.time, left.sequence, left.tag) < (right.time, right.sequence, right.tag)
    }
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
  /// Whether something of theirs is left out, because the ancestor has it and ours does not.
  public internal(set) var leavesOut = false
  /// What was done.
  public internal(set) var outcome = Outcome.merged
  /// The pin of the other copy in the state that was merged.
  public internal(set) var pin = ""
}

/// A record that a merge writes, and the one that was made for: where its value is.
struct MergedRecord {
  var record: Record
  let entry: BlockEntry
  let vault: VaultSnapshot

  init(_ entry: BlockEntry, in vault: VaultSnapshot) {
    (record, self.entry, self.vault) = (entry.record, entry, vault)
  }

  /// Whether both are the same change, with the same value.
  func isSame(as other: MergedRecord) throws(SecretError) -> Bool {
    guard try record.isLike(other.record) else { return false }
    if isRemoval || record.valueTag == other.record.valueTag { return true }
    return try value().isEqual(to: other.value())
  }

  func isAmong(_ others: [MergedRecord]) throws(SecretError) -> Bool {
    for other in others { if try isSame(as: other) { return true } }
    return false
  }

  /// Whether both are one record of one file.
  func isStored(like other: MergedRecord) -> Bool {
    vault === other.vault && entry.record.sequence == other.entry.record.sequence
  }

  private func value() throws(SecretError) -> SecretBytes {
    try vault.value(of: entry, for: entry.record.identifier())
  }
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

extension [MergedRecord] {
  /// From the last record on that keeps nothing.
  fileprivate var remembered: [MergedRecord] { Array(self[(lastIndex(where: \.keepsNothing) ?? 0)...]) }

  fileprivate func keeping(
    _ isKept: (MergedRecord) throws(SecretError) -> Bool
  ) throws(SecretError) -> [MergedRecord] {
    var kept: [MergedRecord] = []
    for one in self { if try isKept(one) { kept.append(one) } }
    return kept
  }
}

extension VaultSnapshot {
  /// The records of each secret, in the order of the lookup ids.
  fileprivate func mergedRecords() throws(SecretError) -> [[MergedRecord]] {
    var all: [[MergedRecord]] = []
    try forEachSecret { records in all.append(records.map { MergedRecord($0, in: self) }) }
    return all
  }
}
