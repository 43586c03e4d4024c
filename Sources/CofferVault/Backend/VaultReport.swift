internal import CofferCore
internal import CofferVaultFormat
internal import FoundationEssentials

/// The result of a successful verification: the whole vault is authentic.
package struct VaultReport: Hashable, Sendable {
  /// The number of secrets in the vault.
  package let secretCount: Int
  /// The number of earlier versions within the history limit.
  package let earlierVersionCount: Int
  /// The number of versions in the file that are beyond the history limit. The next rewrite drops them.
  package let excessVersionCount: Int
  /// The number of key slots in the header, of any kind.
  package let keySlotCount: Int
  /// The size of the file in bytes.
  package let fileSize: Int
  /// The number of bytes after the end of the last commit, which an interrupted change left. They are not used.
  package let unacknowledgedBytes: Int
  /// Names the vault, its master key and the state that was verified: `coffer-pin-v1:` and 100 characters. Not secret.
  /// See ``VaultOptions/pins``.
  package let pin: String
  /// The pin of this vault and master key that accepts every state.
  package let identityPin: String
  /// What the vault was compared with.
  package let compared: VaultComparison
  /// Whether the file proves every pin of the options that names its master key. `false`: a pinned state is older than
  /// what the file still lists.
  package let showsPins: Bool
  /// Whether one of the two commit slots is invalid, as an interrupted commit leaves it.
  package let isRecovered: Bool

  init(verifying open: VaultSnapshot, compared: VaultComparison, showsPins: Bool, now: Date)
    throws(SecretError)
  {
    let (file, keys) = (open.file, open.keys)
    if let lineage = open.base.settings.lineage {
      try keys.openLineage(lineage, vault: file.header.vaultID)
    }
    let rule = HistoryRule(open.base.settings.history.limit, now: now)
    var (secrets, versions, kept) = (0, 0, 0)
    try open.forEachSecret { records throws(SecretError) in
      for entry in records {
        let identifier = try entry.record.item().identifier
        if entry.record.kind == .put { _ = try open.value(of: entry, for: identifier) }
      }
      if records.last?.record.kind == .put { secrets += 1 }
      versions += records.count { $0.record.kind == .put }
      kept += rule.kept(records).count { $0.record.kind == .put }
    }
    _ = try (open.recentChanges(), open.leases())
    secretCount = secrets
    (earlierVersionCount, excessVersionCount) = (kept - secrets, versions - kept)
    keySlotCount = file.header.slots.count
    (pin, identityPin) = (VaultPin(open).description, VaultPin(open).identity.description)
    (self.compared, self.showsPins) = (compared, showsPins)
    isRecovered = open.slots.isRecovered
    fileSize = try file.storage.size()
    unacknowledgedBytes = fileSize - open.state.end
  }
}
