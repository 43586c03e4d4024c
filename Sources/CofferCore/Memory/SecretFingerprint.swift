internal import CSodium

/// A keyed BLAKE2b-256 hash of a secret, to detect changes. Without the key, it reveals nothing about the secret, and
/// guesses cannot be tested.
package struct SecretFingerprint: Hashable, Sendable {
  private let hash: [UInt8]

  fileprivate init(_ hash: [UInt8]) { self.hash = hash }
}

extension SecretBytes {
  /// `count` random bytes.
  package static func random(count: Int) -> SecretBytes {
    SecretBytes(count: count) { bytes in
      if let start = bytes.baseAddress { randombytes_buf(start, bytes.count) }
    }
  }

  /// Returns the fingerprint under `key`, which has 16 to 64 bytes. Equal secrets have equal fingerprints under one
  /// key.
  package borrowing func fingerprint(under key: borrowing SecretBytes) -> SecretFingerprint {
    defer { Residue.clear() }
    var hash = [UInt8](repeating: 0, count: 32)
    withBytes { bytes in
      bytes.withUnsafeBufferPointer { bytes in
        key.withBytes { key in
          key.withUnsafeBufferPointer { key in
            let result = crypto_generichash(
              &hash,
              hash.count,
              bytes.baseAddress,
              UInt64(bytes.count),
              key.baseAddress,
              key.count
            )
            precondition(result == 0, "a fingerprint's key is 16 to 64 bytes long")
          }
        }
      }
    }
    return SecretFingerprint(hash)
  }
}

extension SecretIdentifier {
  /// The BLAKE2b-128 hash of service and account in lower-case hexadecimal, for names that must be short. The hash has no
  /// key, so it does not hide the identifier.
  package var hashText: String {
    _ = GuardedMemory.isReady
    // Neither part contains NUL.
    let bytes = Array(service.utf8) + [0] + Array(account.utf8)
    var hash = [UInt8](repeating: 0, count: 16)
    crypto_generichash(&hash, hash.count, bytes, UInt64(bytes.count), nil, 0)
    return hash.map { $0 < 16 ? "0" + String($0, radix: 16) : String($0, radix: 16) }.joined()
  }
}
