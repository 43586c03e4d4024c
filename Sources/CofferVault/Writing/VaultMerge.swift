internal import CofferCore
internal import CofferVaultFormat
internal import FoundationEssentials

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
    report.historyLimit = ours.base.settings.history == theirs.base.settings.history ? nil : limit
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
    if (one.versions == 0) != (two.versions == 0) { return one.versions == 0 ? two : one }
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
