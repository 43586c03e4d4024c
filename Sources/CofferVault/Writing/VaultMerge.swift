internal import CofferCore
internal import CofferVaultFormat
internal import FoundationEssentials

/// How two copies of a vault become one. `VaultMerging` specifies the rules, whose numbers are given here.
struct VaultMerge {
  var theirs: VaultSnapshot { others.vault }
  private let mine, others: MergedCopy
  private let ancestor: MergedCopy?
  private let undoes: Bool
  /// The time of the changes that undo something.
  private let time: Int64
  /// The sequence of the highest state that both show.
  private let parted: Int
  /// The sequence up to which both files agree.
  private let agreed: Int

  /// The records of each secret that the merge has, in the order of the lookup ids.
  private(set) var secrets: [[MergedRecord]] = []
  private(set) var report = MergeReport()
  /// The time by which the ages of versions are judged.
  let ageTime: Int64
  /// The highest sequence of the merge, before its root.
  private(set) var lastSequence: Int

  /// Merges both copies. `theirs` and `ancestor` have the vault id and the keys of `ours`. Throws `.rolledBack` if no
  /// state is shown by both, and `.tampered`.
  init(
    _ ours: VaultSnapshot, _ theirs: VaultSnapshot, ancestor: VaultSnapshot?, undoing: Bool, time: Int64
  ) throws(SecretError) {
    (mine, others) = (try MergedCopy(ours), try MergedCopy(theirs))
    self.ancestor = try ancestor.map { one throws(SecretError) in try MergedCopy(one) }
    (undoes, self.time) = (undoing && ancestor != nil, time)
    let common = mine.shown.intersection(others.shown)
    guard let parted = common.max() else { throw .partedTooLongAgo(path: theirs.file.path) }
    self.parted = parted.sequence
    let floor = max(mine.floor, others.floor)
    let first = mine.shown.symmetricDifference(others.shown).lazy.map(\.sequence).filter { $0 >= floor }.min()
    agreed = common.lazy.map(\.sequence).filter { $0 >= floor && $0 < first ?? .max }.max() ?? 0
    lastSequence = max(ours.state.sequence, theirs.state.sequence)
    ageTime = try VaultSnapshot.ageTime(of: [ours, theirs], now: time)
    let own = HistoryRule(ours.base.settings.history.limit, time: ageTime)
    let merged = HistoryRule(history.setting.limit, time: ageTime)
    for id in Set(mine.secrets.keys).union(others.secrets.keys).sorted() {
      let (ours, count) = (mine.secrets[id] ?? [], secrets.count)
      let had = own.kept(ours)
      let name = had.isEmpty ? nil : try ours.last?.record.identifier()
      try merge(ours, others.secrets[id] ?? [], self.ancestor?.secrets[id] ?? [])
      let kept = secrets.count == count ? [] : merged.kept(secrets[count])
      guard let name, let last = ours.last else { continue }
      if kept.isEmpty { report.erased.append(name) }
      let births = Set(kept.map(\.birth))
      let isLess = had.contains { !$0.isRemoval && $0 !== last && !births.contains($0.birth) }
      let hasRoom = kept.dropLast().count(where: { !$0.isRemoval }) < merged.limit.versions
      if kept.isEmpty ? last.isRemoval : isLess && hasRoom { report.dropped.append(name) }
    }
    try findRenamings()
  }

  /// Finds the present values that one side had before under another name, which it does not have any more.
  private mutating func findRenamings() throws(SecretError) {
    let moved = secrets.compactMap(\.last).filter { $0.isNews && !$0.isRemoval }
    if moved.isEmpty { return }
    let puts = [mine, others].flatMap { $0.secrets.values.joined() }.filter { !$0.isRemoval }
    let stored = Dictionary(grouping: puts) { $0.record.since ?? $0.record.time }
    let present = Set(secrets.compactMap(\.last).filter { !$0.isRemoval }.map(\.record.id))
    for one in moved {
      for former in stored[one.record.since ?? one.time] ?? []
      where one.copy.secrets[former.record.id]?.last?.isRemoval ?? true {
        if try former.fingerprint(as: one) != one.fingerprint(as: one) { continue }
        let isConflict = present.contains(former.record.id)
        let (old, new) = (try former.record.identifier(), try one.record.identifier())
        report.renamings.append(MergeReport.Renaming(former: old, present: new, isConflict: isConflict))
        break
      }
    }
  }

  // MARK: One secret

  /// Adds the merge of the records of one secret, which are `before` in the ancestor.
  private mutating func merge(
    _ ours: [MergedRecord], _ theirs: [MergedRecord], _ before: [MergedRecord]
  ) throws(SecretError) {
    if let last = ours.last, last.record.sequence <= agreed, ours.heads.count == 1,
      ours.elementsEqual(theirs, by: { $0.record.hasBytes(of: $1.record) })
    {
      return secrets.append(ours)
    }
    var theirs = theirs
    let undone = try compare(ours, &theirs, before)
    defer { for one in ours + theirs { one.twin = nil } }
    let heads = (ours: ours.heads, theirs: theirs.heads)
    let (ownIDs, otherIDs) = (heads.ours.ids, heads.theirs.ids)
    let standing = heads.ours.filter { $0.isNews || $0.isAmong(otherIDs) } + heads.theirs.filter(\.isNews)
    let standingIDs = standing.ids
    var (found, newest, isChanged): ([MergedRecord], MergedRecord?, Bool) = (ours, nil, true)
    if let undone {
      (found, isChanged) = (ours + [undone], false)
    } else if let best = standing.max(by: { $0.rank < $1.rank }) {
      newest = best
      let isOurs = best.copy === mine
      let news = (isOurs ? theirs : ours).filter(\.isNews)
      let kept = (isOurs ? ours : theirs).filter { $0.isKept && $0 !== best }
      // A removal stays behind the value that it removes.
      let end = kept.count - (best.isRemoval && !kept.isEmpty ? 1 : 0)
      found = kept[..<end] + news + kept[end...] + [best]
      let isMoved = best !== (isOurs ? ours : theirs).last
      best.isNew = best.isNew || isMoved
      isChanged = isMoved || !news.isEmpty
      let name = try best.record.identifier()
      let isOverRemoval = !best.isRemoval && standing.contains(where: \.isRemoval)
      if !isOurs {
        let value = best.isRemoval ? nil : best
        report.changes.append(MergeReport.Change(name, value, at: best.date, isOverRemoval: isOverRemoval))
      } else if isOverRemoval {
        report.kept.append(name)
      }
    } else {
      let all = ours.filter(\.isKept) + theirs.filter(\.isNews)
      found = Array(all[..<(all.lastIndex(where: \.isRemoval).map { $0 + 1 } ?? 0)])
    }
    // Rule 4.
    found = found.indices.filter { at in !found[at].isRemoval || at > 0 && !found[at - 1].isRemoval }.map { found[$0] }
    // Rules 5 to 7.
    for (one, next) in zip(found, found.dropFirst()) where one.isNew { next.isNew = true }
    let number = found.last.map { $0.isNew ? lastSequence + found.count(where: \.isNew) : $0.record.sequence }
    var conflicts: [MergedRecord] = []
    for one in found {
      if one.isNew { lastSequence += 1 }
      one.isUnmarked = isChanged
      var (conflict, twin): (Int?, Int?)
      if let newest, one.isAmong(standingIDs), one !== newest, !one.isRemoval, !newest.isRemoval {
        if try one.hasValue(of: newest) { twin = number } else { conflict = number }
      }
      if conflict != nil { conflicts.append(one) }
      try one.place(at: one.isNew ? lastSequence : one.record.sequence, conflict: conflict, twin: twin)
    }
    if let newest, !conflicts.isEmpty, !(conflicts + [newest]).allSatisfy({ $0.isAmong(ownIDs) }) {
      report.conflicts.append(try newest.record.identifier())
    }
    if !found.isEmpty { secrets.append(found) }
  }

  /// Finds what each file makes of the records of the other one. Returns the record of the change that undoes what the
  /// ancestor has and theirs has not, if there is one (Undo).
  private mutating func compare(
    _ ours: [MergedRecord], _ theirs: inout [MergedRecord], _ before: [MergedRecord]
  ) throws(SecretError) -> MergedRecord? {
    let (mine, present, ancestors) = (ours.puts, theirs.puts, before.puts)
    let isSame = present.count == ancestors.count && present.pairs(with: ancestors).count == present.count
    let undoable = mine.pairs(with: ancestors).map(\.one).filter { [$0].pairs(with: present).isEmpty }
    let isOfCommit = undoable.count == mine.count && (!undoable.isEmpty || ancestors.isEmpty)
    let last = ours.last ?? present.last
    let shared = theirs.pairs(with: ours).map(\.one).ids
    let late = theirs.pairs(with: before).map(\.one).filter {
      !shared.contains(ObjectIdentifier($0)) && !self.mine.knows($0.birth, at: $0.record.sequence, parted: parted)
    }
    // Without the values of theirs, nothing of what it did to the secret can be taken.
    let isLate = !present.isEmpty && present.allSatisfy { late.ids.contains(ObjectIdentifier($0)) }
    if ancestor == nil || !undoes && !isSame && !isLate {
      for (one, other) in ours.pairs(with: theirs) { (one.twin, other.twin) = (other, one) }
      let copies = (self.mine, others)
      func knows(_ copy: MergedCopy, _ one: MergedRecord) -> Bool {
        one.twin != nil || copy.knows(one.birth, at: one.record.sequence, parted: parted)
      }
      for one in ours { one.isKnown = knows(copies.1, one) }
      for one in theirs { one.isKnown = knows(copies.0, one) }
      for one in late { one.isLeftOut = true }
      if let one = theirs.first(where: \.isLeftOut) { report.leftOut.append(try one.record.identifier()) }
    } else {
      if !undoes {
        let isLacking = present.contains { !self.mine.knows($0.birth, at: $0.record.sequence, parted: parted) }
        let isGone = present.isEmpty && mine.contains { others.knows($0.birth, at: $0.record.sequence, parted: parted) }
        if let last, isLacking || isGone { report.leftOut.append(try last.record.identifier()) }
        // What the commit has dropped of the secret is dropped, but no head that is a put.
        let stays = (mine + ours.pairs(with: theirs).map(\.one)).ids
        for (one, _) in ours.pairs(with: before) where !stays.contains(ObjectIdentifier(one)) {
          one.isKnown = others.knows(one.birth, at: one.record.sequence, parted: parted)
        }
      }
      theirs = []
    }
    for one in ours + theirs {
      one.isNew = one.record.sequence > agreed || one.twin.map { $0.record.sequence != one.record.sequence } ?? false
    }
    guard ancestor != nil, !isSame, let last else { return nil }
    let name = try last.record.identifier()
    let isUndone = undoes && isOfCommit
    if undoes && !isUndone { report.untouched.append(name) }
    let isAgainst = undoable.contains { !$0.isKnown } || mine.isEmpty && ancestors.isEmpty
    let isRefused = !undoes && isAgainst && !theirs.heads.contains(where: \.isNews)
    if isUndone || isRefused {
      report.takenBack.append(MergeReport.Change(name, present.last, at: (ours.last ?? last).date))
    }
    if !isUndone { return nil }
    let record =
      if let present = present.last {
        try present.record.merged(0, conflict: nil, twin: nil, hasKeptNothing: true, origin: nil, time: time)
      } else {
        try Record(removing: name, id: last.record.id, sequence: 0, time: Timestamp.date(time))
      }
    return MergedRecord(record, valueOf: (present.last ?? last).entry, in: (present.last ?? last).copy)
  }

  // MARK: The rest of the file

  /// Whether ours shows the state of theirs.
  var isOlder: Bool { mine.shown.contains(theirs.state.checkpoint) }
  /// Whether theirs shows the state of ours.
  var isLater: Bool { others.shown.contains(mine.vault.state.checkpoint) }

  /// The key slots that the vault has then.
  func slots(of outcome: MergeReport.Outcome) -> [KeySlot] {
    let (ours, theirs) = (mine.vault, others.vault)
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
    let (ours, mine) = (self.mine.vault, self.mine.vault.file.header.slots)
    (report.addedSlots, report.removedSlots) = (without(mine, slots), without(slots, mine))
    report.historyLimit = ours.base.settings.history.limit == limit ? nil : limit
    report.leavesLimitOut = history.leavesOut
    let own = mine.first { $0.id == ours.keys.slot }
    report.locksOut =
      own.map { own in !slots.has(own) && !slots.contains { $0.recipient != nil && $0.recipient == own.recipient } }
      ?? false
  }

  /// The known slots of both that neither lists as removed.
  var unlistedSlots: [KeySlot] {
    let ours = mine.vault
    let former = (ours.base.settings.formerSlots + theirs.base.settings.formerSlots).map(\.id)
    var ids = Set(former)
    return (ours.file.header.slots + theirs.file.header.slots).filter { $0.isKnown && ids.insert($0.id).inserted }
  }

  /// The history limit of the merge, whether it is that of ours, and whether one that replaced it is left out, because
  /// the ancestor has it too.
  var history: (setting: HistorySetting, isOurs: Bool, leavesOut: Bool) {
    let (one, two) = (mine.vault.base.settings.history, theirs.base.settings.history)
    let births = (one: mine.birth(one.sequence, one.origin), two: others.birth(two.sequence, two.origin))
    let isKnown = mine.knows(births.two, at: two.sequence, parted: parted)
    let knowsOurs = others.knows(births.one, at: one.sequence, parted: parted)
    // Of two that both know, the smaller replaced the larger.
    let isBetter = isKnown ? !two.limit.isSmaller(than: one.limit) : !one.limit.isSmaller(than: two.limit)
    let isUnchanged = ancestor.map { two == $0.vault.base.settings.history } ?? false
    let isOurs = undoes || isUnchanged || (isKnown == knowsOurs ? isBetter : isKnown)
    let leavesOut = !undoes && isUnchanged && knowsOurs && !isKnown
    let (setting, birth) = isOurs ? (one, births.one) : (two, births.two)
    let isMoved = setting.sequence > agreed || one.sequence != two.sequence && births.one == births.two
    if !isMoved { return (setting, isOurs, leavesOut) }
    return (HistorySetting(setting.limit, sequence: lastSequence + 1, origin: birth.origin), isOurs, leavesOut)
  }

  /// Whether the merge has all of theirs: with an ancestor only if theirs comes from it, and ours has all of that.
  private var isWhole: Bool {
    guard let state = ancestor?.vault.state.checkpoint else { return ancestor == nil }
    return !undoes && mine.shown.contains(state) && others.shown.contains(state)
  }

  /// The changes that the root of the merge lists, and the sequence from which on they are complete.
  var recentChanges: ([Checkpoint], floor: Int) {
    let changes = isWhole ? mine.shown.union(others.shown).sorted() : mine.states
    let floor = max(mine.floor, isWhole ? others.floor : 0)
    return Checkpoint.latest(Layout.maximumRecentChanges, of: changes, floor: floor)
  }

  /// The changes of both that were taken without the others of their branch.
  var taken: [Checkpoint] {
    var taken = Set(mine.vault.base.settings.taken)
    if isWhole {
      taken.formUnion(theirs.base.settings.taken)
      taken = taken.filter { !mine.tags.contains($0.tailTag) && !others.tags.contains($0.tailTag) }
    } else {
      let news = secrets.joined().filter { $0.copy === others && $0.isNews }
      taken.formUnion(news.compactMap(\.birth.origin))
      let limit = theirs.base.settings.history
      if !history.isOurs { taken.formUnion([others.birth(limit.sequence, limit.origin).origin].compactMap(\.self)) }
    }
    return taken.sorted().suffix(Layout.maximumRecentChanges)
  }
}

extension HistoryLimit {
  /// Whether `other` keeps more versions, or as many for longer.
  fileprivate func isSmaller(than other: HistoryLimit) -> Bool {
    func size(_ limit: HistoryLimit) -> (Int, Int) { (limit.versions, limit.days == 0 ? .max : limit.days) }
    return size(self) < size(other)
  }
}

extension Array<KeySlot> {
  fileprivate func has(_ slot: KeySlot) -> Bool {
    contains { slot.isKnown ? $0.isKnown && $0.id == slot.id : $0.bytes == slot.bytes }
  }
}
