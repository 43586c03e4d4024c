internal import CSodium
package import CofferVaultFormat
package import CofferCore

/// libsodium's functions with Swift types. No other file of this module derives, seals or opens. ``BLAKE2b`` hashes.
/// Each function that works on a secret ends with ``Residue/clear()``. Thread-safe.
///
/// The guarded memory of the keys has initialised libsodium before any of these functions is called.
package enum Sodium {
  // MARK: XChaCha20-Poly1305-IETF

  /// Seals `plaintext` with a fresh nonce. Returns nonce, ciphertext and tag.
  package static func seal(
    _ plaintext: Span<UInt8>, associatedData: [UInt8], key: SecretBytes, randomness: any Randomness
  ) -> [UInt8] {
    defer { Residue.clear() }
    let count = plaintext.count + Layout.sealOverhead
    return [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      let output = UnsafeMutableRawBufferPointer(start: buffer.baseAddress, count: count)
      randomness.fill(UnsafeMutableRawBufferPointer(rebasing: output[..<Layout.nonceLength]))
      plaintext.withUnsafeBytes { plaintext in
        key.withUnsafeBytes { key in
          // The call fails only if the message exceeds the cipher's limit of 256 GiB.
          _ = crypto_aead_xchacha20poly1305_ietf_encrypt(
            output.start + Layout.nonceLength, nil, plaintext.start, UInt64(plaintext.count),
            associatedData, UInt64(associatedData.count), nil, output.start, key.start)
        }
      }
      filled = count
    }
  }

  /// Opens a seal into `output`, which must be 40 bytes shorter. Returns `false` if the seal is not authentic.
  package static func open(
    _ sealed: Span<UInt8>, associatedData: [UInt8], key: SecretBytes,
    into output: UnsafeMutableRawBufferPointer
  ) -> Bool {
    guard sealed.count == output.count + Layout.sealOverhead else { return false }
    defer { Residue.clear() }
    return sealed.withUnsafeBytes { sealed in
      key.withUnsafeBytes { key in
        crypto_aead_xchacha20poly1305_ietf_decrypt(
          output.start, nil, nil, sealed.start + Layout.nonceLength,
          UInt64(sealed.count - Layout.nonceLength), associatedData, UInt64(associatedData.count),
          sealed.start, key.start) == 0
      }
    }
  }

  /// Returns the plaintext of a seal, or `nil` if the seal is not authentic. The plaintext is outside guarded memory:
  /// for names and offsets, not for values.
  package static func open(_ sealed: Span<UInt8>, associatedData: [UInt8], key: SecretBytes) -> [UInt8]? {
    guard sealed.count >= Layout.sealOverhead else { return nil }
    var plaintext = [UInt8](repeating: 0, count: sealed.count - Layout.sealOverhead)
    let isAuthentic = plaintext.withUnsafeMutableBytes {
      open(sealed, associatedData: associatedData, key: key, into: $0)
    }
    return isAuthentic ? plaintext : nil
  }

  /// Compares in constant time.
  package static func isEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    left.count == right.count && sodium_memcmp(left, right, left.count) == 0
  }

  /// Returns SipHash-2-4 of `message` under the first 16 bytes of `key`.
  package static func shortHash(_ message: UnsafeRawBufferPointer, key: SecretBytes) -> UInt64 {
    var hash: UInt64 = 0
    key.withUnsafeBytes { key in
      withUnsafeMutableBytes(of: &hash) { hash in
        _ = crypto_shorthash(hash.start, message.start, UInt64(message.count), key.start)
      }
    }
    return UInt64(littleEndian: hash)
  }

  // MARK: X25519

  /// Returns the public key of a 32-byte secret key.
  static func publicKey(of secret: SecretBytes) -> [UInt8] {
    defer { Residue.clear() }
    var key = [UInt8](repeating: 0, count: 32)
    secret.withUnsafeBytes { secret in _ = crypto_scalarmult_base(&key, secret.start) }
    return key
  }

  /// Returns the shared secret of a secret key and a public key, or `nil` if the public key is of low order.
  static func sharedSecret(_ secret: SecretBytes, _ publicKey: [UInt8]) -> SecretBytes? {
    defer { Residue.clear() }
    return filled { output in secret.withUnsafeBytes { crypto_scalarmult(output, $0.start, publicKey) } }
  }

  /// Returns 32 bytes that `body` fills, or `nil` unless `body` returns 0.
  private static func filled(_ body: (UnsafeMutablePointer<UInt8>) -> Int32) -> SecretBytes? {
    var result: Int32 = -1
    let bytes = SecretBytes(count: 32) { result = body($0.start) }
    return result == 0 ? bytes : nil
  }

  // MARK: X-Wing

  static var hasXWing: Bool { coffer_has_xwing() != 0 }

  static var version: String { String(cString: sodium_version_string()) }

  /// Returns the public key of a 32-byte seed, or `nil` without X-Wing.
  static func hybridPublicKey(of seed: SecretBytes) -> [UInt8]? {
    guard hasXWing else { return nil }
    defer { Residue.clear() }
    var key = [UInt8](repeating: 0, count: KeySlotParameters.hybridLengths.recipient)
    // The secret key is the seed.
    _ = SecretBytes(count: 32) { secret in
      seed.withUnsafeBytes { seed in _ = crypto_kem_seed_keypair(&key, secret.start, seed.start) }
    }
    return key
  }

  /// Returns a new shared secret, and sets `share` to the ciphertext from which the holder of the public key's seed
  /// gets it. Returns `nil` for an unusable public key. libsodium must have X-Wing.
  static func encapsulate(to publicKey: [UInt8], _ share: inout [UInt8]) -> SecretBytes? {
    defer { Residue.clear() }
    share = [UInt8](repeating: 0, count: KeySlotParameters.hybridLengths.share)
    return filled { crypto_kem_enc(&share, $0, publicKey) }
  }

  /// Returns the shared secret that the holder of `seed` gets from `share`: a wrong one if `share` is for another seed.
  /// libsodium must have X-Wing.
  static func decapsulate(_ share: [UInt8], _ seed: SecretBytes) -> SecretBytes? {
    defer { Residue.clear() }
    return filled { output in seed.withUnsafeBytes { crypto_kem_dec(output, share, $0.start) } }
  }

  // MARK: Derivation

  /// Derives a subkey of a 32-byte master key.
  package static func subkey(_ subkey: Subkey, of master: SecretBytes) -> SecretBytes {
    derive(subkey.rawValue, context: Subkey.context, from: master)
  }

  /// Derives a 32-byte key from `secret`, random bytes of any length, with `crypto_kdf` and a `context` of 8
  /// characters.
  static func derivedKey(from secret: SecretBytes, context: String) -> SecretBytes {
    // crypto_kdf needs a key of 32 bytes.
    let master = SecretBytes(count: 32) { output in secret.withBytes { BLAKE2b.hash($0, into: output) } }
    return derive(1, context: context, from: master)
  }

  private static func derive(_ number: UInt64, context: String, from master: SecretBytes) -> SecretBytes {
    defer { Residue.clear() }
    precondition(context.utf8.count == Int(crypto_kdf_CONTEXTBYTES))
    return SecretBytes(count: 32) { output in
      master.withUnsafeBytes { master in
        _ = crypto_kdf_derive_from_key(output.start, 32, number, context, master.start)
      }
    }
  }

  /// Stretches a passphrase to 32 bytes with Argon2id 1.3 over `memory` bytes. Returns `nil` if the memory cannot be
  /// allocated.
  package static func stretch(_ passphrase: SecretBytes, salt: [UInt8], passes: Int, memory: Int) -> SecretBytes? {
    defer { Residue.clear() }
    return filled { output in
      passphrase.withUnsafeBytes { passphrase in
        crypto_pwhash(
          output, 32, UnsafeRawPointer(passphrase.start).assumingMemoryBound(to: CChar.self),
          UInt64(passphrase.count), salt, UInt64(passes), memory, crypto_pwhash_ALG_ARGON2ID13)
      }
    }
  }
}

extension SecretBytes {
  borrowing func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R {
    withBytes { $0.withUnsafeBytes(body) }
  }
}

// libsodium rejects null pointers, and an empty buffer has one. Nothing is read or written through the pointer that
// replaces it, because the count beside it is 0.
extension UnsafeRawBufferPointer {
  var start: UnsafePointer<UInt8> {
    (baseAddress ?? UnsafeRawPointer(bitPattern: 1).unsafelyUnwrapped).assumingMemoryBound(to: UInt8.self)
  }
}

extension UnsafeMutableRawBufferPointer {
  var start: UnsafeMutablePointer<UInt8> { .init(mutating: UnsafeRawBufferPointer(self).start) }
}
