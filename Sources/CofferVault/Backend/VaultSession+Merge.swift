internal import CofferCore
internal import CofferVaultFormat

extension VaultSession {
  /// Merges the copy into the vault. See ``VaultBackend/merge(with:ancestor:undoing:previewed:)``.
  func merge(
    with copy: VaultCopy, ancestor: VaultCopy?, undoing: Bool, previewed: MergeReport?,
    _ unlocking: Unlocking
  ) throws(SecretError) -> MergeReport {
    let report = try write(unlocking) { vault throws(SecretError) in
      let (merge, report) = try self.merge(vault, copy, ancestor: ancestor, undoing: undoing)
      if let previewed, previewed.pins != report.pins {
        throw SecretError(.conflict, "The vault has changed meanwhile.", advice: "Try again.")
      }
      if report.outcome == .unchanged { return (report, .done) }
      let slots = merge.slots(of: report.outcome)
      if slots.isEmpty || report.locksOut && previewed == nil { throw .lockedOut(path: path) }
      try KeySlot.requireRoom(for: slots.count)
      try DerivationBudget.requireRoom(for: slots, chain.options)
      if report.outcome == .replaced {
        try verify(merge.theirs)
        let publication = try replace(vault, vault.keys) { recording throws(SecretError) in
          try vault.replace(by: merge.theirs, recording: recording)
        }
        return (report, publication)
      }
      var changes = VaultSnapshot.RewriteChanges(of: vault)
      (changes.slots, changes.merge) = (slots, merge)
      return (report, try rewrite(vault, changes, VaultTransaction(vault, now: environment.now)))
    }
    let undone = undoing ? report.takenBack : []
    let changed = (report.changes + undone).map(\.identifier) + report.erased
    shared.note(changed.map { SecretChange($0) })
    return report
  }

  /// Compares the copy with `vault`, and decides what is to be done.
  func merge(
    _ vault: VaultSnapshot, _ copy: VaultCopy, ancestor: VaultCopy?, undoing: Bool
  ) throws(SecretError) -> (merge: VaultMerge, report: MergeReport) {
    let theirs = try openCopy(copy, of: vault)
    try theirs.file.requireKnownFeatures()
    let ancestor = try ancestor.map { one throws(SecretError) in
      let opened = try openCopy(one, of: vault)
      try verify(opened)
      return opened
    }
    let merge = try VaultMerge(
      vault, theirs, ancestor: ancestor, undoing: undoing,
      time: Timestamp.milliseconds(environment.now()))
    var report = merge.report
    report.pins = [VaultPin(vault).description, VaultPin(theirs).description]
    if let ancestor {
      let ids = [ancestor, theirs].map { Set($0.file.header.slots.map(\.id)) }
      let limits = [ancestor, theirs].map(\.base.settings.history.limit)
      report.hasOtherSettings = ids[0] != ids[1] || limits[0] != limits[1]
    }
    // With an ancestor, what one commit did is taken, or undone, wherever it stands in the vault's history.
    if ancestor == nil {
      if merge.isOlder {
        report.outcome = .unchanged
      } else if merge.isLater {
        report.outcome = .replaced
      }
    }
    if report.outcome != .unchanged {
      let limit = report.outcome == .replaced ? theirs.base.settings.history.limit : merge.history.setting.limit
      merge.describe(merge.slots(of: report.outcome), limit, in: &report)
    }
    return (merge, report)
  }

  /// Reads the whole file of `vault`, and throws what is wrong with it.
  private func verify(_ vault: VaultSnapshot) throws(SecretError) {
    _ = try VaultReport(verifying: vault, compared: .nothing, showsPins: true, now: environment.now())
  }

  /// Opens a copy with the keys of `vault`. Throws `.unexpectedVault` or `.unexpectedKey` if it is another vault's.
  func openCopy(_ copy: VaultCopy, of vault: VaultSnapshot) throws(SecretError) -> VaultSnapshot {
    let file = try VaultFile(copy.image)
    guard file.header.vaultID == vault.file.header.vaultID else { throw .otherVault(path: file.path) }
    guard vault.keys.isCommitted(to: file.header) else { throw .otherKey(path: file.path) }
    try vault.keys.authenticate(file.header)
    return try VaultSnapshot(file, keys: vault.keys)
  }
}

extension VaultSnapshot {
  /// Puts a copy of `later` with the leases of the vault in the place of the vault, as
  /// ``rewrite(_:_:environment:recording:)`` does.
  fileprivate func replace(
    by later: VaultSnapshot, recording: (CommitState) -> Void
  ) throws(SecretError) -> (Publication, CommitState) {
    let draft = try file.storage.draft()
    try draft.write(later.file.storage.read(later.state.end, at: 0), at: 0)
    let leases = try leases().moved(over: later.leases())
    try draft.write(leases.sealed(by: later.keys, for: later.file.header), at: later.file.baseStart - Layout.pageSize)
    let publication = try draft.publish()
    if case .done = publication { recording(later.state) }
    withExtendedLifetime(draft) {}
    return (publication, later.state)
  }
}

extension SecretError {
  fileprivate static func otherVault(path: String) -> SecretError {
    SecretError(.unexpectedVault, "The vault at \(path) is not a copy of this one.")
  }

  fileprivate static func lockedOut(path: String) -> SecretError {
    SecretError(
      .conflict, "The other copy has removed the key slot that opened the vault at \(path).",
      advice: "This key would not open the merge. secret merge shows what it would do, and asks.")
  }

  fileprivate static func otherKey(path: String) -> SecretError {
    SecretError(
      .unexpectedKey,
      "The vault at \(path) has another master key, so its key slots were changed since the two parted.",
      advice: "Keep the copy from which a key was removed, and copy single secrets of the other.")
  }
}
