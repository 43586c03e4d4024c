public import CofferCore
internal import CofferVaultFormat

extension VaultCredential.Kind {
  /// A 32-byte key.
  public static let key = VaultCredential.Kind("key")
}

extension VaultCredential {
  /// A 32-byte key, such as ``VaultKey/generate()`` makes. For the text of a key, use ``VaultKey/parse(_:)`` first.
  public static func key(_ key: consuming SecretBytes) -> VaultCredential { VaultCredential(.key, key) }
}

/// The slot of a random key, which is the slot's secret as it is.
extension KeyParameters: SecretSlotScheme {
  static var kind: VaultCredential.Kind { .key }
  var cost: VaultKeySlot.Cost? { nil }

  static func new(
    for credential: borrowing VaultCredential, options: VaultOptions, _ randomness: any Randomness
  ) throws(SecretError) -> KeyParameters {
    KeyParameters(salt: randomness.array(16))
  }

  func key(
    for credential: borrowing VaultCredential, environment: VaultEnvironment
  ) throws(SecretError) -> SlotKey? {
    try VaultKey.requireBytes(credential.secret)
    return SlotKey(credential.secret.copy())
  }
}
