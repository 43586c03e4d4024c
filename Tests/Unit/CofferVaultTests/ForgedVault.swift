import CofferCore
import CofferSimulation
import CofferSystem
import CofferVault
import CofferVaultFormat
import FoundationEssentials

/// A file as a hostile holder of the key can make it: every seal is authentic, and the sealed content is what the test
/// wants.
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
    /// The fields of the record, instead of those of ``metadata``.
    var fields: [TaggedField]

    init(
      _ account: String, _ value: [UInt8]?, service: String = "tests", claims: String? = nil,
      metadata: SecretMetadata? = nil, fields: [TaggedField] = []
    ) {
      (self.account, self.value, self.service) = (account, value, service)
      (self.claims, self.metadata, self.fields) = (claims, metadata, fields)
    }
  }

  /// The records of the base, in the order of their sequences, which begin with 1.
  var base: [Change] = []
  var tail: [Change] = []
  /// The blocks of the base, as indices of its records in ascending order of their ids. `nil`: one block.
  var blocks: [[Int]]?
  var recent: [Checkpoint] = []
  /// The root's floor, if it is not the first of ``recent`` or the root's own sequence.
  var floor: Int?
  /// The root's sequence, if it is not the one that follows the base.
  var sequence: Int?
  /// Key slots after the one of `FixedCredential.key`.
  var slots: [KeySlot] = []
  var history = HistoryLimit.standard
  var lineage: [UInt8]?
  /// The header's read-only compatible bits: a program that does not know one of them may only read the file.
  var readOnlyCompatible: UInt32 = 0
  /// Changes the plaintext of the root.
  var root: @Sendable (inout [UInt8]) -> Void = { _ in }
  var state: @Sendable (inout CommitState) -> Void = { _ in }

  private let keys = DerivedKeys(randomness: SystemRandomness())
  private let vault = SystemRandomness().bytes16()
  private let file = SystemRandomness().bytes16()
  private let lookupKey = SystemRandomness().array(32)

  /// A record, which readers may refuse.
  private struct Sealed {
    let position: VersionPosition
    let body: [UInt8]
    let value: [UInt8]
  }

  private func seal(_ change: Change, _ sequence: Int) throws -> Sealed {
    let identifier = try SecretIdentifier(service: change.service, account: change.account)
    let claimed = try change.claims.map { try SecretIdentifier(service: "tests", account: $0) }
    let id = BLAKE2b.hash(
      HashedMessage.lookupID(claimed ?? identifier).span, key: SecretBytes(lookupKey), count: 16
    ).withUnsafeBytes { Bytes16($0) }
    func sealed(_ record: Record, _ value: [UInt8]) -> Sealed {
      let body =
        change.fields.isEmpty ? record.bytes : record.bytes.dropLast(4) + sized(change.fields)
      return Sealed(position: VersionPosition(record), body: body, value: value)
    }
    guard let value = change.value else {
      return sealed(try Record(removing: identifier, id: id, sequence: sequence, time: .now), [])
    }
    let sealedValue = keys.sealValue(
      SecretBytes(value), .value(vault: vault, lookupID: id, sequence: sequence))
    let item = SecretItem(
      identifier: identifier,
      metadata: try MetadataChange.replace(change.metadata ?? SecretMetadata()).applied(to: nil, now: .now))
    return sealed(try Record(id: id, sequence: sequence, sealedValue: sealedValue, item: item), sealedValue)
  }

  /// The bytes of the file.
  func bytes() throws -> [UInt8] { try generations()[tail.count] }

  /// The file with its base alone, and then after each change of the tail.
  func generations() throws -> [[UInt8]] {
    let credential = KeySlot.header(
      id: vault, parameters: .key(salt: [UInt8](repeating: 1, count: 16)), created: 0, label: "")
    let slot = try SlotKey(FixedCredential.key.credential.secret)
      .wrap(keys.master, vault: vault, slotHeader: credential, randomness: keys.randomness)
    var header = Header(vaultID: vault, slots: [slot] + slots)
    header.fileID = file
    header.readOnlyCompatible = readOnlyCompatible
    keys.authorize(&header)
    let start = header.bytes
    let baseStart = start.count + Layout.pagesLength
    var body: [UInt8] = []
    let sequence = sequence ?? base.count + 1
    var settings = BaseIndex.Settings(lookupKey: lookupKey, history: history)
    settings.lineage = lineage
    var index = BaseIndex(
      sequence: sequence, settings: settings,
      recent: BaseIndex.Recent(floor: floor ?? recent.first?.sequence ?? sequence))
    try appendBlocks(to: &body, &index, baseStart)
    if !recent.isEmpty {
      let sealed = seal(
        .recent, recent.flatMap { encode($0.sequence, $0.tailTag) }, at: baseStart + body.count)
      (index.recent.length, index.recent.tag) = (sealed.count, Bytes16(tagOf: sealed))
      body += sealed
    }
    var rootBytes = index.bytes
    root(&rootBytes)
    let sealedRoot = seal(.root, rootBytes, at: baseStart + body.count)
    body += sealedRoot
    var state = CommitState(
      sequence: sequence, baseEnd: baseStart + body.count, rootLength: sealedRoot.count,
      rootTag: Bytes16(tagOf: sealedRoot))
    var states = [state]
    for change in tail {
      try appendFrame(change, to: &body, &state)
      states.append(state)
    }
    return states.map { state in
      let end = state.end
      var state = state
      self.state(&state)
      let commitSlots = (0...1).flatMap { keys.seal(state.bytes, .commitSlot($0, headerMAC: header.mac)) }
      return start + commitSlots + zeros(Layout.pageSize) + body[..<(end - baseStart)]
    }
  }

  private func seal(_ part: BasePart, _ bytes: [UInt8], at offset: Int) -> [UInt8] {
    keys.seal(bytes, .base(part, file: file, offset: offset))
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
    var (directory, content): ([UInt8], [UInt8]) = ([], [])
    let directoryLength = items.count * Layout.directoryEntryLength
    for item in items {
      directory += encode(item.position.id, item.position.sequence, UInt32(directoryLength + content.count))
      content += item.body
      if !item.value.isEmpty { content += encode(start + body.count) }
      body += item.value
    }
    let offset = start + body.count
    let sealed = seal(.block, directory + content, at: offset)
    index.entries.append(
      BaseIndex.Entry(
        first: first.position, offset: offset, length: sealed.count, itemCount: items.count,
        tag: Bytes16(tagOf: sealed)))
    body += sealed
  }

  private func appendFrame(
    _ change: Change, to body: inout [UInt8], _ state: inout CommitState
  ) throws {
    state.sequence += 1
    let sealed = try seal(change, state.sequence)
    let plaintext = Padding.pad(encode(sealed.position.id, sealed.position.sequence, sealed.body))
    let seal = keys.seal(
      plaintext,
      .metadata(file: file, offset: state.end, length: plaintext.count, previousTag: state.tailTag))
    let mask = seal.withUnsafeBytes {
      keys.frameMask(nonce: UnsafeRawBufferPointer(rebasing: $0[..<Layout.nonceLength]))
    }
    let frame = encode(UInt32(plaintext.count) ^ mask, seal, sealed.value)
    body += frame
    state.end += frame.count
    state.tailTag = Bytes16(tagOf: seal)
  }

  /// A slot of `count` bytes whose kind no version knows.
  static func unknownSlot(_ count: Int) throws -> KeySlot {
    try KeySlot(
      parsing: encode(200 as UInt8, 1 as UInt8, UInt16(count), zeros(count - 4)), from: 0, to: nil)
  }

  /// A simulated disk with the file as `vault`.
  func disk() throws -> SimulatedDisk {
    let disk = SimulatedDisk()
    _ = try disk.locate("vault", followingLink: true).directory.create("vault")
    try disk.overwrite("vault", with: bytes())
    return disk
  }
}
