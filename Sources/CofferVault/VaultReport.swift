internal import CofferSystem
internal import CofferVaultFormat
public import CofferCore

/// What a verification read, all of it authentic.
public struct VaultReport: Hashable, Sendable {
  public let secretCount: Int
  public let keySlotCount: Int
  /// Size of the file, in bytes.
  public let fileSize: Int
  /// Bytes past the end of what was committed: what an interrupted change left. They do not count.
  public let unacknowledgedBytes: Int
  /// The state that was verified: `SEQUENCE-TAG`. A later state has a higher sequence.
  public let checkpoint: String
  /// One of the two commit slots does not open, which is what an interrupted commit leaves.
  public let isRecovered: Bool

  /// Throws `.rolledBack` unless the state is `checkpoint` or one of more changes, and `.configuration`
  /// where that is no checkpoint.
  public func requireAtLeast(_ checkpoint: String) throws(SecretError) {
    guard let earlier = Checkpoint(checkpoint) else {
      throw SecretError(
        .configuration, "That is not a checkpoint: a number, a hyphen and 32 hexadecimal digits.",
        advice: "Take it from what a verification printed.")
    }
    guard let found = Checkpoint(self.checkpoint), !found.contradicts(earlier) else {
      throw SecretError(
        .rolledBack, "The vault is at \(self.checkpoint), and not at \(checkpoint) or later.",
        advice: "An older copy was put in its place, or another vault.")
    }
  }

  init(verifying open: UnlockedVault) throws(SecretError) {
    let vault = open.vault
    let keys = open.keys
    var live: Set<Bytes16> = []

    func check(_ item: BlockEntry) throws(SecretError) {
      let identifier = try item.record.identifier()
      guard keys.lookupID(identifier) == item.record.id else {
        throw .tampered("a record has the lookup id of another name")
      }
      _ = try item.record.item()
      do throws(SecretError) { _ = try open.value(of: item) } catch { throw error.about(identifier) }
    }

    for index in open.base.blocks.indices {
      for item in try open.block(index) {
        try check(item)
        live.insert(item.record.id)
      }
    }
    var frames = TailReader(
      vault,
      keys: keys,
      from: open.state.baseEnd,
      to: open.state.end,
      previousTag: open.state.rootTag,
      sequence: open.base.sequence
    )
    while let frame = try frames.next() {
      switch frame.content {
      case .put(let item):
        try check(item)
        live.insert(item.record.id)
      case .remove(let record):
        guard keys.lookupID(record.identifier) == record.id else {
          throw .tampered("a record has the lookup id of another name")
        }
        live.remove(record.id)
      }
    }
    guard live.count == open.state.itemCount else {
      throw .tampered("the number of secrets does not agree")
    }
    secretCount = live.count
    keySlotCount = vault.header.slots.count
    checkpoint = open.state.checkpoint.description
    isRecovered = open.isRecovered
    do throws(FileSystemError) { fileSize = try vault.file.status().size } catch {
      throw .io(error, "read", path: vault.path)
    }
    unacknowledgedBytes = fileSize - open.state.end
  }
}
