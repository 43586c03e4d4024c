import CofferCore
import CofferSimulation
import CofferSystem
import CofferVault
import CofferVaultFormat
import FoundationEssentials

/// A file as a hostile holder of the key can make it: every seal is authentic, and the sealed content is what the
/// test wants.
struct ForgedVault: Sendable {
  /// A change to a secret.
  struct Change: Sendable {
    var account: String
    var service: String
    /// `nil` for a remove.
    var value: [UInt8]?
    /// The account of the service `tests` whose lookup id the record has. `nil`: it has its own.
    var claims: String?
    var metadata: SecretMetadata?

    init(
      _ account: String, _ value: [UInt8]?, service: String = "tests", claims: String? = nil,
      metadata: SecretMetadata? = nil
    ) {
      (self.account, self.value, self.service) = (account, value, service)
      (self.claims, self.metadata) = (claims, metadata)
    }
  }

  /// The records of the base, in the order of their sequences, which begin with 1.
  var base: [Change] = []
  var tail: [Change] = []
  /// The blocks of the base as indices of its records, which are counted in ascending order of their ids. `nil`: one block.
  var blocks: [[Int]]?
  /// The root's sequence, if it is not the one that follows the base.
  var sequence: Int?
  /// Key slots after the one of `FixedCredential.key`.
  var slots: [KeySlot] = []
  var history = HistoryLimit.standard
  var lineage: [UInt8]?
  /// The header's bits that permit a program that does not know them only to read.
  var readOnlyCompatible: UInt32 = 0
  /// Changes the plaintext of the root.
  var root: @Sendable (inout [UInt8]) -> Void = { _ in }
  var state: @Sendable (inout CommitState) -> Void = { _ in }

  private let keys = DerivedKeys(randomness: SystemRandomness())
  private let vault = SystemRandomness().bytes16()
  private let file = SystemRandomness().bytes16()

  private struct Sealed {
    let record: Record
    let value: [UInt8]
    var position: VersionPosition { VersionPosition(record) }
  }

  private func seal(_ change: Change, _ sequence: Int) throws -> Sealed {
    let identifier = try SecretIdentifier(service: change.service, account: change.account)
    let claimed = try change.claims.map { try SecretIdentifier(service: "tests", account: $0) }
    let id = keys.lookupID(claimed ?? identifier)
    guard let value = change.value else {
      let record = try Record(removing: identifier, id: id, sequence: sequence, time: .now)
      return Sealed(record: record, value: [])
    }
    let sealed = keys.sealValue(
      SecretBytes(copying: value), .value(vault: vault, lookupID: id, sequence: sequence))
    let record = try Record(
      id: id, sequence: sequence, valueTag: Bytes16(tagOf: sealed),
      item: SecretItem(
        identifier: identifier, metadata: .merged(change.metadata, over: nil, now: .now)))
    return Sealed(record: record, value: sealed)
  }

  /// The bytes of the file.
  func bytes() throws -> [UInt8] {
    let credential = KeySlot.header(
      id: vault, parameters: KeyParameters(salt: [UInt8](repeating: 1, count: 16)), created: 0, label: "")
    let slot = try SlotKey(FixedCredential.key.credential.secret.copy())
      .wrap(keys.master, vault: vault, slotHeader: credential, randomness: keys.randomness)
    var header = Header(vaultID: vault, slots: [slot] + slots)
    header.fileID = file
    header.readOnlyCompatible = readOnlyCompatible
    keys.authorize(&header)
    let start = header.bytes
    let baseStart = start.count + 2 * Layout.pageSize
    var body: [UInt8] = []
    var index = BaseIndex(
      sequence: sequence ?? base.count + 1, settings: BaseIndex.Settings(history: history, lineage: lineage))
    try appendBlocks(to: &body, &index, baseStart)
    let rootOffset = baseStart + body.count
    var rootBytes = index.bytes
    root(&rootBytes)
    let sealedRoot = keys.seal(rootBytes, .root(file: file, offset: rootOffset))
    body += sealedRoot
    var live = Dictionary(base.map { ($0.claims ?? $0.account, $0.value != nil) }, uniquingKeysWith: { $1 })
    for change in tail { live[change.claims ?? change.account] = change.value != nil }
    var state = CommitState(
      sequence: index.sequence, rootOffset: rootOffset, rootLength: sealedRoot.count,
      rootTag: Bytes16(tagOf: sealedRoot), secretCount: live.values.count { $0 })
    state.end = baseStart + body.count
    for change in tail { try appendFrame(change, to: &body, &state) }
    self.state(&state)
    let hash = BLAKE2b.hash(start.span, count: 32)
    let commitSlots = (0...1).flatMap { keys.seal(state.bytes, .commitSlot($0, headerHash: hash)) }
    return start + commitSlots + body
  }

  private func appendBlocks(to body: inout [UInt8], _ index: inout BaseIndex, _ start: Int) throws {
    let items = try base.enumerated().map { try seal($1, $0 + 1) }.sorted { $0.position < $1.position }
    for indices in blocks ?? [Array(items.indices)] {
      appendBlock(of: indices.map { items[$0] }, to: &body, &index, start)
    }
  }

  private func appendBlock(
    of items: [Sealed], to body: inout [UInt8], _ index: inout BaseIndex, _ start: Int
  ) {
    guard let first = items.first else { return }
    var block: [UInt8] = []
    for item in items {
      BlockEntry(record: item.record, valueOffset: start + body.count, valueLength: item.value.count)
        .append(to: &block)
      body += item.value
    }
    let offset = start + body.count
    let sealed = keys.seal(block, .block(index.blocks.count, file: file, offset: offset))
    index.blocks.append(
      BaseIndex.Block(
        first: first.position, offset: offset, length: sealed.count, itemCount: items.count,
        tag: Bytes16(tagOf: sealed)))
    index.itemCount += items.count
    body += sealed
  }

  private func appendFrame(
    _ change: Change, to body: inout [UInt8], _ state: inout CommitState
  ) throws {
    state.sequence += 1
    let sealed = try seal(change, state.sequence)
    let metadata = Padding.pad(FrameMetadata.encoded(sealed.record, valueLength: sealed.value.count))
    let seal = keys.seal(
      metadata,
      .metadata(file: file, offset: state.end, length: metadata.count, previousTag: state.tailTag))
    let mask = keys.frameMask(nonce: Array(seal[..<Layout.nonceLength]))
    let frame = encode(UInt32(metadata.count) ^ mask, seal, sealed.value)
    body += frame
    state.end += frame.count
    state.tailTag = Bytes16(tagOf: seal)
  }

  /// A slot of a kind that no version knows, of `count` bytes.
  static func unknownSlot(_ count: Int) throws -> KeySlot {
    try KeySlot(
      parsing: encode(200 as UInt8, 1 as UInt8, UInt16(count), Zeros(count - 4)), from: 0, to: nil)
  }

  /// A simulated disk with the file as `vault`.
  func disk() throws -> SimulatedDisk {
    let disk = SimulatedDisk()
    _ = try disk.locate("vault", followingLink: true).directory.create("vault")
    try disk.overwrite("vault", with: bytes())
    return disk
  }
}
