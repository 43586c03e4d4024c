internal import CofferCore
internal import CofferVaultFormat

extension VaultSession {
  /// Merges the copy into the vault. See ``VaultBackend/merge(with:ancestor:takingBack:previewed:)``.
  func merge(
    with copy: VaultCopy, ancestor: VaultCopy?, takingBack: Bool, previewed: MergeReport?,
    _ unlocking: Unlocking
  ) throws(SecretError) -> MergeReport {
    let report = try write(unlocking) { vault throws(SecretError) in
      let (merge, report) = try self.merge(vault, copy, ancestor: ancestor, takingBack: takingBack)
      if let previewed, previewed.pin != report.pin {
        throw SecretError(
          .conflict, "The copy of the vault has changed meanwhile.", advice: "Nothing was changed. Try again.")
      }
      switch report.outcome {
      case .unchanged: return (report, .done)
      case .replaced:
        _ = try VaultReport(
          verifying: merge.theirs, compared: .nothing, showsPins: true, now: environment.now())
        let publication = try replace(vault, vault.keys) { recording throws(SecretError) in
          try vault.replace(by: merge.theirs, recording: recording)
        }
        return (report, publication)
      case .merged:
        var changes = VaultSnapshot.RewriteChanges(of: vault)
        (changes.slots, changes.history, changes.merge) = (merge.slots, try merge.historyLimit(), merge)
        try KeySlot.requireRoom(for: changes.slots.count)
        try DerivationBudget.requireRoom(for: changes.slots, chain.options)
        return (report, try rewrite(vault, changes, VaultTransaction(vault, now: environment.now)))
      }
    }
    let changed = report.changes + (takingBack ? report.takenBack : [])
    shared.note(changed.map { SecretChange($0.identifier) })
    return report
  }

  /// Compares the copy with `vault`, and decides what is to be done.
  func merge(
    _ vault: VaultSnapshot, _ copy: VaultCopy, ancestor: VaultCopy?, takingBack: Bool
  ) throws(SecretError) -> (merge: VaultMerge, report: MergeReport) {
    let theirs = try openCopy(copy, of: vault)
    let ancestor = try ancestor.flatMap { one throws(SecretError) in try openAncestor(one, of: vault) }
    let merge = try VaultMerge(
      vault, theirs, ancestor: ancestor, takingBack: takingBack,
      time: Timestamp.milliseconds(environment.now()))
    var report = merge.report
    report.pin = VaultPin(theirs).description
    // With an ancestor, what one commit did is taken, or undone, wherever it stands in the vault's history.
    if ancestor == nil {
      if try vault.hasBeen(in: theirs.state) {
        report.outcome = .unchanged
      } else if try theirs.hasBeen(in: vault.state), takingBack || report.takenBack.isEmpty {
        report.outcome = .replaced
      }
    }
    return (merge, report)
  }

  /// Opens a copy with the keys of `vault`. Throws `.unexpectedVault` or `.unexpectedKey` if it is another vault's.
  private func openCopy(_ copy: VaultCopy, of vault: VaultSnapshot) throws(SecretError) -> VaultSnapshot {
    let file = try VaultFile(copy.file)
    guard file.header.vaultID == vault.file.header.vaultID else { throw .otherVault(path: file.path) }
    guard vault.keys.isCommitted(to: file.header) else { throw .otherKey(path: file.path) }
    try vault.keys.authenticate(file.header)
    return try VaultSnapshot(file, keys: vault.keys)
  }

  /// Opens the file from which both copies come, or returns `nil` if it is none.
  private func openAncestor(
    _ copy: VaultCopy, of vault: VaultSnapshot
  ) throws(SecretError) -> VaultSnapshot? {
    do throws(SecretError) {
      let opened = try openCopy(copy, of: vault)
      _ = try VaultReport(verifying: opened, compared: .nothing, showsPins: true, now: environment.now())
      return opened
    } catch {
      let areNone: Set<SecretError.Code> = [
        .notAVault, .unsupportedVersion, .tampered, .unexpectedVault, .unexpectedKey,
      ]
      guard areNone.contains(error.code) else { throw error }
      return nil
    }
  }
}

extension VaultSnapshot {
  fileprivate func hasBeen(in state: CommitState) throws(SecretError) -> Bool {
    try shows(state.sequence) { $0 == state.tailTag } == true
  }

  /// Puts a copy of `later` in the place of the vault, as ``rewrite(_:_:environment:recording:)`` does.
  fileprivate func replace(
    by later: VaultSnapshot, recording: (CommitState) -> Void
  ) throws(SecretError) -> Publication {
    let draft = try file.storage.draft(.replacement)
    let pieceLength = 1 << 20
    for offset in stride(from: 0, to: later.state.end, by: pieceLength) {
      let count = min(pieceLength, later.state.end - offset)
      try draft.write(later.file.storage.read(count, at: offset), at: offset)
    }
    let publication = try draft.publish()
    if case .done = publication { recording(later.state) }
    withExtendedLifetime(draft) {}
    return publication
  }
}

extension SecretError {
  fileprivate static func otherVault(path: String) -> SecretError {
    SecretError(
      .unexpectedVault, "The vault at \(path) is not a copy of this one.", advice: "Nothing was changed.")
  }

  fileprivate static func otherKey(path: String) -> SecretError {
    SecretError(
      .unexpectedKey,
      "The vault at \(path) has another master key, so its key slots were changed since the two parted.",
      advice: "Nothing was changed. Keep the copy from which a key was removed, and copy single secrets of the other.")
  }
}
