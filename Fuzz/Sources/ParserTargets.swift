@testable import CofferConfiguration
import CofferVaultFormat
import CofferCore
import CofferVault
import CofferTestSupport
import Foundation

@testable import Coffer

/// Targets for the parsers. The parsers are strict: a parsed value encodes to the same bytes.
enum ParserTargets {
  /// Runs `body`, which may only throw `.tampered` and the `allowed` codes.
  private static func parse(
    _ allowed: [SecretError.Code] = [],
    _ body: () throws(SecretError) -> Void
  ) {
    do throws(SecretError) { try body() } catch {
      require(error.code == .tampered || allowed.contains(error.code), "an error of code \(error.code)")
      require(!error.description.isEmpty, "an error has a description")
    }
  }

  static func header(_ input: [UInt8]) {
    parse([.notAVault, .unsupportedVersion]) { () throws(SecretError) in
      let length = try Header.length(ofHeaderBeginning: input)
      require(Header.paddedLength(length) <= Layout.maximumHeaderLength, "the length is bounded")
      // The padding is added, so that the fuzzer does not have to find it.
      let padding = Header.paddedLength(length) - input.count
      let bytes = input + (0..<max(0, padding)).map { _ in 0 as UInt8 }
      let header = try Header(parsing: bytes)
      require(header.bytes == bytes, "a header encodes to what it was parsed from")
    }
  }

  static func keySlot(_ input: [UInt8]) {
    parse { () throws(SecretError) in
      let slot = try KeySlot(parsing: input, from: 0, to: nil)
      require(input.starts(with: slot.bytes), "a slot is a part of what it was parsed from")
      if let parameters = slot.parameters {
        let header = KeySlot.header(
          id: slot.id, parameters: parameters, created: slot.created, label: slot.label)
        let again = try KeySlot(
          header: header, commitment: slot.commitment, wrappedKey: slot.wrappedKey)
        require(again.bytes == slot.bytes, "a slot encodes to what it was parsed from")
      }
    }
  }

  static func commitState(_ input: [UInt8]) {
    parse { () throws(SecretError) in
      let bytes = Array(input.prefix(CommitState.length))
      let whole = bytes + [UInt8](repeating: 0, count: CommitState.length - bytes.count)
      let state = try CommitState(parsing: whole, headerLength: Layout.pageSize)
      require(state.bytes == whole, "a state encodes to what it was parsed from")
    }
  }

  static func frameMetadata(_ input: [UInt8]) {
    parse([.unsupportedVersion]) { () throws(SecretError) in
      let metadata = try FrameMetadata(parsing: input)
      require(
        FrameMetadata.encoded(metadata.record, valueLength: metadata.valueLength) == input,
        "metadata encodes to what it was parsed from")
    }
  }

  /// A record may contain times that `Date` rounds, and attribute names that are equal as strings but not as
  /// bytes.
  static func checkEncoding(of record: Record) {
    parse { () throws(SecretError) in
      let item = try record.item()
      let bytes = try Record(
        id: record.id, sequence: record.sequence, valueTag: record.valueTag, item: item
      ).bytes
      require(bytes.count <= record.bytes.count, "an item encodes to no more than it was parsed from")
      var reader = ByteReader(bytes, part: "a record")
      let again = try Record(parsing: &reader)
      try reader.expectEnd()
      let itemAgain = try again.item()
      require(itemAgain.identifier == item.identifier, "the name is the same")
      require(itemAgain.metadata.label == item.metadata.label, "the label is the same")
      require(itemAgain.metadata.attributes == item.metadata.attributes, "the attributes are the same")
    }
  }

  static func record(_ input: [UInt8]) {
    parse([.unsupportedVersion]) { () throws(SecretError) in
      var reader = ByteReader(input, part: "a record")
      let record = try Record(parsing: &reader)
      require(record.bytes == Array(input[..<reader.position]), "a record keeps its bytes")
      require(
        try record.with(id: record.id, valueTag: record.valueTag).bytes == record.bytes,
        "a record under the same key has the same bytes")
      if record.kind == .put { checkEncoding(of: record) }
    }
  }

  static func knownVault(_ input: [UInt8]) {
    parse { () throws(SecretError) in
      let (record, mac) = try KnownVaultRecord.parse(input)
      require(
        record.hashedBytes(mac: mac) == input, "a known-vault record encodes to what it was parsed from")
    }
  }

  static func block(_ input: [UInt8]) {
    parse([.unsupportedVersion]) { () throws(SecretError) in
      // The offset of the block, its number of items and its first record come from the input, so that the
      // fuzzer can make them agree.
      guard input.count > 27 else { return }
      let bytes = Array(input[2...])
      var reader = ByteReader(bytes, from: 1, part: "a block")
      let first = VersionPosition(id: try reader.bytes16(), sequence: try reader.number())
      let place = BaseIndex.Block(
        first: first, offset: 12_288 + Int(input[1]) * 32, length: input.count, itemCount: Int(input[0]),
        tag: .zero)
      let items = try BlockEntry.parse(bytes, block: place, start: 12_288, maximumSequence: 1 << 40)
      var again: [UInt8] = []
      for item in items { item.append(to: &again) }
      require(again == bytes, "a block encodes to what it was parsed from")
    }
  }

  static func root(_ input: [UInt8]) {
    parse([.unsupportedVersion]) { () throws(SecretError) in
      guard input.count > 4 else { return }
      // The offset of the root, which follows its last block.
      let bytes = Array(input[4...])
      let place = input.withUnsafeBytes { UInt32(littleEndian: $0.loadUnaligned(as: UInt32.self)) }
      let index = try BaseIndex(parsing: bytes, start: 12_288, rootOffset: Int(place))
      // Only the history limit may be missing, and is then added.
      let again = try BaseIndex(parsing: index.bytes, start: 12_288, rootOffset: Int(place))
      require(again.bytes == index.bytes, "a root encodes to what it was parsed from")
      require(index.bytes == bytes || index.bytes.count == bytes.count + 8, "a root keeps its fields")
      for (number, block) in index.blocks.enumerated() {
        guard let found = index.block(for: block.first.id) else { fatalError("a block is not found") }
        require(
          found >= number && index.blocks[found].first.id == block.first.id,
          "the last block is found that begins with an id")
      }
    }
  }

  static func keyText(_ input: [UInt8]) {
    parse([.invalidKey]) { () throws(SecretError) in
      let key = try VaultKey.parse(SecretBytes(copying: input))
      require(key.count == VaultKey.length, "a key has 32 bytes")
      let text = try VaultKey.text(of: key).array()
      require(input == text || input == text + [0x0A], "the text of the key is the same")
    }
  }

  static func configuration(_ input: [UInt8]) {
    let text = String(decoding: input, as: UTF8.self)
    parse([.configuration]) { () throws(SecretError) in
      let providers = BackendRegistry.providers
      var file = try ConfigurationFile(parsing: text, path: "/config", providers: providers)
      let again = try ConfigurationFile(parsing: file.text, path: "/config", providers: providers)
      require(
        again.backend == file.backend && again.keyFiles == file.keyFiles, "the text has the same content")
      file.set("backend", "vault")
      let changed = try ConfigurationFile(
        parsing: file.text, path: "/config", providers: providers)
      require(changed.backend == BackendSelection(.vault), "the changed line is read back")
      require(changed.keyFiles == file.keyFiles, "no other line changes")
    }
  }
}
