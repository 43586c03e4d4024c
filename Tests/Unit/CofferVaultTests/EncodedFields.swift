import CofferCore
import CofferVaultFormat

@testable import CofferVault

extension Record {
  /// Every field as it is in the file, and the time of creation of a put.
  func encoded() throws(SecretError) -> (created: Int64, fields: [TaggedField]) {
    var (reader, created) = (ByteReader(bytes, from: 9, part: "a record"), 0 as Int64)
    if kind == .put {
      created = try reader.i64()
      _ = try reader.array(20)
    }
    for _ in 0..<2 { _ = try reader.text(1...SecretIdentifier.maximumLength) }
    return (created, try reader.allFields())
  }
}

extension VaultSnapshot {
  /// Every field of the root as it is in the file.
  func encodedRootFields() throws(SecretError) -> [TaggedField] {
    let root = try keys.open(
      file.storage.read(state.rootLength, at: state.rootOffset), tag: state.rootTag,
      .base(.root, file: file.header.fileID, offset: state.rootOffset))
    var reader = ByteReader(root, from: 72, part: "the root")
    return try reader.allFields()
  }
}

extension ByteReader {
  fileprivate mutating func allFields() throws(SecretError) -> [TaggedField] {
    try taggedFields(0...0) { _, _ throws(SecretError) in }
  }
}
