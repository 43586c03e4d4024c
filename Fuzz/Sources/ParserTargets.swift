@testable import Coffer
@testable import CofferConfiguration
import CofferCore
import CofferTestSupport
@testable import CofferVault
import CofferVaultFormat
import Foundation

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

  /// The plaintext of a frame, without padding.
  static func frame(_ input: [UInt8]) {
    var head: Record.Head?
    parse { () throws(SecretError) in head = try Record.Head(frame: input.span) }
    parse([.unsupportedVersion]) { () throws(SecretError) in
      let record = try Record(frame: input)
      require(record.frame == input, "a record encodes to what it was parsed from")
      require(
        head?.id == record.id && head?.sequence == record.sequence && head?.valueLength == record.valueLength,
        "the head of a frame is that of its record")
      if record.kind == .remove { return }
      let rewritten = try record.rewritten()
      require(
        try rewritten.rewritten().bytes == rewritten.bytes && rewritten.bytes.count <= record.bytes.count,
        "a rewritten record has no more fields, and stays as it is")
      require(
        record.with(valueTag: record.valueTag).bytes == record.bytes,
        "a record with the same tag has the same bytes")
      checkEncoding(of: record)
    }
  }

  /// A record may contain times that `Date` rounds, and attribute names that are equal as strings but not as bytes.
  private static func checkEncoding(of record: Record) {
    parse { () throws(SecretError) in
      let item = try record.item()
      let again = try Record(
        id: record.id, sequence: record.sequence, sealedValue: [UInt8](repeating: 0, count: 72), item: item)
      require(again.bytes.count <= record.bytes.count, "an item encodes to no more than it was parsed from")
      let itemAgain = try again.item()
      require(itemAgain.identifier == item.identifier, "the name is the same")
      require(itemAgain.metadata.label == item.metadata.label, "the label is the same")
      require(itemAgain.metadata.attributes == item.metadata.attributes, "the attributes are the same")
    }
  }

  static func knownVault(_ input: [UInt8]) {
    parse([.unsupportedVersion]) { () throws(SecretError) in
      let (record, mac) = try KnownVaultRecord.parse(input)
      require(
        record.hashedBytes(mac: mac) == input, "a known-vault record encodes to what it was parsed from")
    }
  }

  private static let baseStart = 16_384

  private static func u32(_ bytes: [UInt8], _ offset: Int) -> Int {
    bytes.withUnsafeBytes {
      Int(UInt32(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
    }
  }

  private static func position(_ bytes: [UInt8]) -> VersionPosition {
    bytes.withUnsafeBytes { bytes in
      let sequence = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 16, as: UInt64.self))
      return VersionPosition(id: Bytes16(bytes), sequence: Int(clamping: sequence))
    }
  }

  static func block(_ input: [UInt8]) {
    // The number of items and the offset of the block come from the input, so that the fuzzer can make them agree.
    guard input.count > 26 else { return }
    let bytes = Array(input[3...])
    let place = BaseIndex.Entry(
      first: position(bytes), offset: baseStart + 8 * (Int(input[1]) | Int(input[2]) << 8),
      length: bytes.count + 40,
      itemCount: Int(input[0]), tag: .zero)
    parse([.unsupportedVersion]) { () throws(SecretError) in
      let block = try Block(bytes, entry: place, maximumSequence: 1 << 40)
      // A lookup decodes one item of a block whose others nobody decoded.
      for index in 0..<block.count {
        require(block.index(of: block.position(index)) == index, "an item is found")
        parse([.unsupportedVersion]) { () throws(SecretError) in
          let item = try block.item(index, valuesFrom: baseStart)
          require(
            item.record.kind == .remove || item.valueOffset + item.record.valueLength <= place.offset,
            "a value lies before its block")
        }
      }
      let items = try block.items(valuesFrom: baseStart)
      var again = BlockWriter()
      for item in items { again.append(item) }
      require(again.bytes == bytes, "a block encodes to what it was parsed from")
    }
  }

  static func root(_ input: [UInt8]) {
    parse([.unsupportedVersion]) { () throws(SecretError) in
      guard input.count > 4 else { return }
      // The offset of the root, which follows its last part.
      let (bytes, place) = (Array(input[4...]), u32(input, 0))
      let index = try BaseIndex(parsing: bytes, start: baseStart, rootOffset: place)
      // Only the history limit may be missing, and is then added. Only fields that a rewrite leaves out are not
      // encoded.
      let again = try BaseIndex(parsing: index.bytes, start: baseStart, rootOffset: place)
      require(again.bytes == index.bytes, "a root encodes to what it was parsed from")
      require(index.bytes == bytes || index.bytes.count <= bytes.count + 18, "a root has no more fields")
      checkSearch(in: index.entries)
    }
  }

  private static func checkSearch(in entries: [BaseIndex.Entry]) {
    for (number, entry) in entries.enumerated() {
      guard let found = entries.index(for: entry.first.id) else { fatalError("an entry is not found") }
      require(
        found >= number && entries[found].first.id == entry.first.id,
        "the last entry is found that begins with an id")
    }
  }

  /// The floor and the root's sequence, then the list.
  static func recentChanges(_ input: [UInt8]) {
    parse { () throws(SecretError) in
      guard input.count >= 8 else { return }
      let (bytes, floor, sequence) = (Array(input[8...]), u32(input, 0), u32(input, 4))
      let root = BaseIndex(
        sequence: sequence, settings: BaseIndex.Settings(lookupKey: [], history: .none),
        recent: BaseIndex.Recent(floor: floor))
      let list = try Checkpoint.list(bytes, before: root)
      require(
        list.flatMap { encode($0.sequence, $0.tailTag) } == bytes, "a list encodes to what it was parsed from"
      )
      require(zip(list, list.dropFirst()).allSatisfy { $0 < $1 }, "a list ascends")
      require(
        list.allSatisfy { floor <= $0.sequence && $0.sequence < sequence }, "a list is between floor and root"
      )
    }
  }

  static func keyText(_ input: [UInt8]) {
    parse([.invalidKey]) { () throws(SecretError) in
      let key = try VaultKey.parse(SecretBytes(input))
      require(key.count == VaultKey.length, "a key has 32 bytes")
      let text = try VaultKey.text(of: key).array()
      require(input == text || input == text + [0x0A], "the text of the key is the same")
    }
  }

  /// The text of a recipient, or a file of identities.
  static func ageText(_ input: [UInt8]) {
    let text = String(decoding: input, as: UTF8.self)
    parse([.invalidKey]) { () throws(SecretError) in
      require(try VaultRecipient(text).description == text, "the text of the recipient is the same")
    }
    parse([.invalidKey]) { () throws(SecretError) in
      for identity in try VaultIdentity.parse(SecretBytes(input)) {
        let again = try VaultIdentity.parse(identity.text())
        require(
          again.count == 1 && again[0].text().array() == identity.text().array(),
          "an identity is kept by its text")
        require(identity.recipient == again[0].recipient, "the recipient of an identity is the same")
      }
    }
  }

  static func pinText(_ input: [UInt8]) {
    let text = String(decoding: input, as: UTF8.self)
    parse([.configuration]) { () throws(SecretError) in
      require(try VaultPin(text).description == text, "the text of the pin is the same")
    }
  }

  static func configuration(_ input: [UInt8]) {
    let text = String(decoding: input, as: UTF8.self)
    parse([.configuration]) { () throws(SecretError) in
      let providers = BackendRegistry.providers
      func entries(_ text: String) throws(SecretError) -> ConfigurationFile.Entries {
        try ConfigurationFile(parsing: text, path: "/config", providers: providers).entries
      }
      let file = try ConfigurationFile(parsing: text, path: "/config", providers: providers)
      require(try entries(file.text) == file.entries, "the text has the same content")
      let id = String(repeating: "a", count: 32)
      for change in [
        { $0.set(backend: BackendSelection(.vault)) }, { $0.set(keyFile: "/\"\\\n", forVault: id) },
      ]
        as [(inout ConfigurationFile) -> Void]
      {
        var (copy, expected) = (file, file.entries.keyFiles)
        change(&copy)
        let changed = try entries(copy.text)
        if changed.keyFiles != expected { expected[id] = "/\"\\\n" }
        require(changed.keyFiles == expected, "a key file is read back, and no other changes")
        require(
          [file.entries.backend, BackendSelection(.vault)].contains(changed.backend),
          "the backend is read back")
      }
    }
  }
}
