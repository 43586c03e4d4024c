package import CofferCore

/// The parameters of a passphrase's key slot: how Argon2id stretches the passphrase.
package struct PassphraseParameters: KeySlotParameters {
  package static let type: UInt8 = 1

  package let passes: UInt32
  /// KiB.
  package let memory: UInt32
  package let salt: [UInt8]

  /// `salt` has 16 bytes.
  package init(passes: UInt32, memory: UInt32, salt: [UInt8]) {
    (self.passes, self.memory, self.salt) = (passes, memory, salt)
  }

  package init(parsing reader: inout ByteReader) throws(SecretError) {
    passes = try reader.u32()
    memory = try reader.u32()
    salt = try reader.array(16)
    guard passes >= 1, memory >= 8 else { throw reader.failure("has a cost below the minimum") }
  }

  package var bytes: [UInt8] { encode(passes, memory, salt) }
}
