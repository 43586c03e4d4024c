internal import CofferVaultFormat

/// A state of the vault that was seen, and that a later file is compared with.
struct SeenState: Sendable {
  let record: KnownVaultRecord
  /// The bytes that the MAC is of.
  let message: [UInt8]
  let mac: [UInt8]

  /// The state that the file of the record about the vault at `path` contains.
  init(_ record: KnownVaultRecord, path: String, mac: [UInt8]) {
    (self.record, self.mac) = (record, mac)
    message = HashedMessage.knownVault(path: path, fields: record.fields)
  }

  /// A state under the master key of `keys`. The path is empty if the state is only in memory.
  init(_ record: KnownVaultRecord, path: String = "", _ keys: DerivedKeys) {
    self.record = record
    message = HashedMessage.knownVault(path: path, fields: record.fields)
    mac = keys.knownVaultMAC(of: message)
  }
}
