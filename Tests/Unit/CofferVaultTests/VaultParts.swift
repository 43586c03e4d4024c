import CofferCore
import CofferTestSupport
import CofferVault
import CofferVaultFormat

/// The parts of an opened vault, for tests that look at its bytes.
extension VaultSnapshot {
  /// The items of all blocks. `bytes` are those of the file.
  func baseItems(in bytes: [UInt8]) throws -> [BlockEntry] {
    var end = file.baseStart
    return try base.entries.flatMap { entry in
      defer { end = entry.end }
      return try Block(open(.block, entry, in: bytes), entry: entry, maximumSequence: base.sequence)
        .items(valuesFrom: end)
    }
  }

  /// The items of the tail, each with the range of its frame.
  func tailItems() throws -> [(item: BlockEntry, frame: Range<Int>)] {
    var start = state.baseEnd
    return try tail.frames.map { frame in
      let item = try tail.entry(frame)
      let end = item.valueOffset + item.record.valueLength
      defer { start = end }
      return (item, start..<end)
    }
  }

  private func open(_ part: BasePart, _ entry: BaseIndex.Entry, in bytes: [UInt8]) throws -> [UInt8] {
    try keys.open(
      Array(bytes[entry.offset..<entry.end]), tag: entry.tag,
      .base(part, file: file.header.fileID, offset: entry.offset))
  }
}

/// The fields of a pin's text.
struct PinFields {
  static let prefix = "coffer-pin-v1:"
  var vault: [UInt8]
  var masterCommitment: [UInt8]
  var sequence: Int
  var digest: [UInt8]

  /// Reads a pin that Coffer has made.
  init(_ text: String) throws {
    let body = Array(text.utf8.dropFirst(Self.prefix.utf8.count))
    guard let decoded = SecretBytes.decodingBase64(body.span, isURLSafe: true) else {
      throw SecretError.tampered("a pin is not base64url")
    }
    var reader = ByteReader(decoded.array(), part: "a pin")
    (vault, masterCommitment) = (try reader.array(16), try reader.array(32))
    (sequence, digest) = (try reader.number(), try reader.array(16))
  }

  /// The text, with the checksum of the fields.
  var text: String {
    let fields = encode(vault, masterCommitment, sequence, digest)
    let checksum = BLAKE2b.hash((Array(Self.prefix.utf8) + fields).span, count: 32).prefix(3)
    let body = SecretBytes(fields + checksum).base64(isURLSafe: true)
    return Self.prefix + String(decoding: body.array(), as: UTF8.self)
  }
}

extension VaultReport {
  /// The number of changes that the vault has had.
  var sequence: Int {
    get throws { try PinFields(pin).sequence }
  }
}
