/// A keyed BLAKE2b-256 hash of a secret, to detect changes. Without the key, it reveals nothing about the secret, and
/// guesses cannot be tested.
package struct SecretFingerprint: Hashable, Sendable {
  fileprivate let hash: [UInt8]

  /// The first 8 bytes in hexadecimal.
  package var text: String { hash.prefix(8).map(\.hexadecimal).joined().lowercased() }
}

extension SecretBytes {
  package static func random(count: Int) -> SecretBytes {
    SecretBytes(count: count) { SecureRandom.fill($0) }
  }

  /// Returns the fingerprint under `key`, which has 16 to 64 bytes. Equal secrets have equal fingerprints under one
  /// key.
  package func fingerprint(under key: SecretBytes) -> SecretFingerprint {
    withBytes { SecretFingerprint(hash: BLAKE2b.hash($0, key: key, count: 32)) }
  }
}

extension SecretIdentifier {
  /// The BLAKE2b-128 hash of service and account in lower-case hexadecimal, for names that must be short. The hash has
  /// no key, so it does not hide the identifier.
  package var hashText: String {
    // Neither part contains NUL.
    let bytes = Array(service.utf8) + [0] + Array(account.utf8)
    return BLAKE2b.hash(bytes.span, count: 16).map(\.hexadecimal).joined().lowercased()
  }
}
