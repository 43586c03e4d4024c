public import CofferCore
internal import CofferVaultFormat
internal import FoundationEssentials

/// The result of a successful verification: the whole vault is authentic.
public struct VaultReport: Hashable, Sendable {
  /// The number of secrets in the vault.
  public let secretCount: Int
  /// The number of earlier versions within the history limit.
  public let earlierVersionCount: Int
  /// The number of versions in the file that are beyond the history limit. The next rewrite drops them.
  public let excessVersionCount: Int
  /// The number of key slots in the header, of any kind.
  public let keySlotCount: Int
  /// The size of the file in bytes.
  public let fileSize: Int
  /// The number of bytes after the end of the last commit, which an interrupted change left. They are not used.
  public let unacknowledgedBytes: Int
  /// The state that was verified: `SEQUENCE-TAG`. A later state has a higher sequence.
  public let checkpoint: String
  /// Whether one of the two commit slots is invalid, as an interrupted commit leaves it.
  public let isRecovered: Bool
  /// The tags of the states since the last rewrite, by their sequences.
  private let tags: [Int: Bytes16]

  /// Throws `.rolledBack` unless the verified state is `checkpoint` or a later one, and `.configuration` if
  /// `checkpoint` is malformed.
  public func requireAtLeast(_ checkpoint: String) throws(SecretError) {
    guard let earlier = Checkpoint(checkpoint) else {
      throw SecretError(
        .configuration, "That is not a checkpoint: a number, a hyphen and 32 hexadecimal digits.",
        advice: "Take it from what a verification printed.")
    }
    guard let found = Checkpoint(self.checkpoint), found.sequence >= earlier.sequence,
      tags[earlier.sequence] ?? earlier.tailTag == earlier.tailTag
    else {
      throw SecretError(
        .rolledBack, "The vault is at \(self.checkpoint), which does not follow from \(checkpoint).",
        advice: "An older copy or another vault was put in its place.")
    }
  }

  /// Reads and authenticates the whole file.
  init(verifying open: VaultSnapshot, now: Date) throws(SecretError) {
    let (file, keys) = (open.file, open.keys)

    func check(_ entry: BlockEntry) throws(SecretError) {
      let identifier = try entry.record.item().identifier
      if entry.record.kind == .put { _ = try open.value(of: entry, for: identifier) }
    }
    if let lineage = open.base.settings.lineage {
      try keys.authenticate(lineage: lineage, vault: file.header.vaultID)
    }
    let rule = HistoryRule(open.base.settings.history, now: now)
    var (secrets, versions, kept) = (0, 0, 0)
    try open.forEachSecret { records throws(SecretError) in
      for record in records { try check(record) }
      if records.last?.record.kind == .put { secrets += 1 }
      versions += records.count { $0.record.kind == .put }
      kept += rule.kept(records).count { $0.record.kind == .put }
    }
    guard secrets == open.state.secretCount else { throw .wrongSecretCount }
    secretCount = secrets
    (earlierVersionCount, excessVersionCount) = (kept - secrets, versions - kept)
    keySlotCount = file.header.slots.count
    checkpoint = open.state.checkpoint.description
    isRecovered = open.slots.isRecovered
    tags = (open.base.sequence...open.state.sequence).reduce(into: [:]) { $0[$1] = open.tag(at: $1) }
    fileSize = try file.storage.size()
    unacknowledgedBytes = fileSize - open.state.end
  }
}
