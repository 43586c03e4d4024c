internal import CofferCore
internal import CofferVaultFormat

extension VaultSession {
  /// Merges the copy at `other` into the vault. See ``VaultBackend/merge(with:ancestor:takingBack:)``.
  func merge(
    _ other: any VaultMedium, ancestor: (any VaultMedium)?, takingBack: Bool, _ unlocking: Unlocking
  ) throws(SecretError) -> MergeReport {
    let report = try write(unlocking) { vault throws(SecretError) in
      let theirs = try copy(VaultFile(other.open()), of: vault)
      let older = try self.ancestor(ancestor, of: vault)
      let now = environment.now()
      let merge = try VaultMerge(
        vault, theirs, ancestor: older, takingBack: takingBack, time: Timestamp.milliseconds(now))
      var report = merge.report
      // With an ancestor, what one commit did is taken, or undone, wherever it stands in the vault's history.
      let (isOlder, isLater) =
        older == nil ? (try vault.shows(theirs.state), try theirs.shows(vault.state)) : (false, false)
      if isOlder {
        report.outcome = .unchanged
        return (report, .done)
      }
      if isLater, takingBack || report.takenBack.isEmpty {
        _ = try VaultReport(verifying: theirs, compared: .nothing, showsPins: true, now: now)
        report.outcome = .replaced
        return (
          report,
          try replace(vault, vault.keys) { recording throws(SecretError) in
            try vault.replace(by: theirs, recording: recording)
          }
        )
      }
      var changes = VaultSnapshot.RewriteChanges(of: vault)
      (changes.slots, changes.history, changes.merge) = (merge.slots, try merge.historyLimit(), merge)
      try KeySlot.requireRoom(for: changes.slots.count)
      try DerivationBudget.requireRoom(for: changes.slots, chain.options)
      return (report, try rewrite(vault, changes, VaultTransaction(vault, now: environment.now)))
    }
    let changed = report.changes + (takingBack ? report.takenBack : [])
    shared.note(changed.map { SecretChange($0.identifier) })
    return report
  }

  /// Opens `file` with the keys of `vault`. Throws `.unexpectedVault` or `.unexpectedKey` if it is not a copy of it.
  private func copy(_ file: VaultFile, of vault: VaultSnapshot) throws(SecretError) -> VaultSnapshot {
    guard file.header.vaultID == vault.file.header.vaultID else { throw .otherVault(path: file.path) }
    guard vault.keys.isCommitted(to: file.header) else { throw .otherKey(path: file.path) }
    try vault.keys.authenticate(file.header)
    return try VaultSnapshot(file, keys: vault.keys)
  }

  /// Opens the file from which both copies come, or returns `nil` if it is none.
  private func ancestor(
    _ medium: (any VaultMedium)?, of vault: VaultSnapshot
  ) throws(SecretError) -> VaultSnapshot? {
    guard let medium else { return nil }
    do throws(SecretError) {
      let opened = try copy(VaultFile(medium.open()), of: vault)
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
  fileprivate func shows(_ state: CommitState) throws(SecretError) -> Bool {
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
