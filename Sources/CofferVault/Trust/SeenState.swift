internal import CofferVaultFormat

/// A state of the vault that was seen, and that a later file is compared with.
struct SeenState: Sendable {
  let record: KnownVaultRecord
  /// The bytes that the MAC covers.
  let message: [UInt8]
  let mac: [UInt8]

  /// The state in a record whose file ends with `text`.
  init(_ record: KnownVaultRecord, text: String, mac: [UInt8]) {
    (self.record, self.mac) = (record, mac)
    message = HashedMessage.knownVault(text: text, fields: record.fields)
  }

  /// A state under the master key of `keys`. The text is empty if the state is only in memory.
  init(_ record: KnownVaultRecord, text: String = "", _ keys: DerivedKeys) {
    self.record = record
    message = HashedMessage.knownVault(text: text, fields: record.fields)
    mac = keys.knownVaultMAC(of: message)
  }
}
