public import CofferCore
internal import CofferVaultFormat

/// The result of a verification: everything that it read is authentic.
public struct VaultReport: Hashable, Sendable {
  /// The number of secrets in the vault.
  public let secretCount: Int
  /// The number of key slots in the header, of any kind.
  public let keySlotCount: Int
  /// The size of the file in bytes.
  public let fileSize: Int
  /// The bytes after the end of the last commit, which an interrupted change left. They do not count.
  public let unacknowledgedBytes: Int
  /// The state that was verified: `SEQUENCE-TAG`. A later state has a higher sequence.
  public let checkpoint: String
  /// Whether one of the two commit slots is invalid, as an interrupted commit leaves it.
  public let isRecovered: Bool

  /// Throws `.rolledBack` unless the verified state is `checkpoint` or a later one, and `.configuration` if
  /// `checkpoint` is malformed.
  public func requireAtLeast(_ checkpoint: String) throws(SecretError) {
    guard let earlier = Checkpoint(checkpoint) else {
      throw SecretError(
        .configuration, "That is not a checkpoint: a number, a hyphen and 32 hexadecimal digits.",
        advice: "Take it from what a verification printed.")
    }
    guard let found = Checkpoint(self.checkpoint), !found.contradicts(earlier) else {
      throw SecretError(
        .rolledBack, "The vault is at \(self.checkpoint), and not at \(checkpoint) or later.",
        advice: "An older copy or another vault was put in its place.")
    }
  }

  /// Reads and authenticates the whole file.
  init(verifying open: UnlockedVault) throws(SecretError) {
    let (file, keys) = (open.file, open.keys)
    var live: Set<Bytes16> = []

    func check(_ id: Bytes16, of identifier: SecretIdentifier) throws(SecretError) {
      guard keys.lookupID(identifier) == id else {
        throw .tampered("a record has the lookup id of another name")
      }
    }
    func check(_ item: BlockEntry) throws(SecretError) {
      let identifier = try item.record.item().identifier
      try check(item.record.id, of: identifier)
      do throws(SecretError) { _ = try open.value(of: item) } catch { throw error.about(identifier) }
      live.insert(item.record.id)
    }

    for index in open.base.blocks.indices {
      for item in try open.block(index) { try check(item) }
    }
    var frames = TailReader(
      file, keys: keys, from: open.state.baseEnd, to: open.state.end, previousTag: open.state.rootTag,
      sequence: open.base.sequence)
    while let frame = try frames.next() {
      switch frame.content {
      case .put(let item): try check(item)
      case .remove(let record):
        try check(record.id, of: record.identifier)
        live.remove(record.id)
      }
    }
    guard live.count == open.state.itemCount else { throw .tampered("the number of secrets is wrong") }
    secretCount = live.count
    keySlotCount = file.header.slots.count
    checkpoint = open.state.checkpoint.description
    isRecovered = open.slots.isRecovered
    fileSize = try file.storage.size()
    unacknowledgedBytes = fileSize - open.state.end
  }
}
