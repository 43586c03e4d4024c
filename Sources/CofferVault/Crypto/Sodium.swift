internal import CSodium
package import CofferVaultFormat
package import CofferCore

/// libsodium's functions with Swift types. No other file of this module derives, seals, opens or hashes.
/// Each function that works on a secret ends with ``Residue/clear()``. Thread-safe.
package enum Sodium {
  private static let isReady: Bool = {
    guard sodium_init() >= 0 else { fatalError("libsodium could not be initialised: no randomness?") }
    return true
  }()

  /// Initialises libsodium once. Every function below that a program can reach first calls it.
  static func prepare() { _ = isReady }

  // MARK: XChaCha20-Poly1305-IETF

  /// Seals `plaintext` with a fresh nonce. Returns nonce, ciphertext and tag.
  package static func seal(
    _ plaintext: Span<UInt8>, associatedData: [UInt8], key: borrowing SecretBytes,
    randomness: any Randomness
  ) -> [UInt8] {
    prepare()
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

  /// Opens a seal into `output`, which must be 40 bytes shorter. Returns `false` if the seal is not
  /// authentic.
  package static func open(
    _ sealed: Span<UInt8>, associatedData: [UInt8], key: borrowing SecretBytes,
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

  /// Returns the plaintext of a seal, or `nil` if the seal is not authentic. The plaintext is outside guarded
  /// memory: for names and offsets, not for values.
  package static func open(
    _ sealed: Span<UInt8>, associatedData: [UInt8], key: borrowing SecretBytes
  ) -> [UInt8]? {
    guard sealed.count >= Layout.sealOverhead else { return nil }
    let length = sealed.count - Layout.sealOverhead
    var isAuthentic = false
    let plaintext = [UInt8](unsafeUninitializedCapacity: length) { buffer, count in
      count = length
      // The buffer's capacity may exceed `length`.
      let output = UnsafeMutableRawBufferPointer(start: buffer.baseAddress, count: length)
      isAuthentic = open(sealed, associatedData: associatedData, key: key, into: output)
    }
    return isAuthentic ? plaintext : nil
  }

  // MARK: BLAKE2b

  /// Returns the BLAKE2b hash of `message` with `count` bytes, 16…64.
  package static func hash(_ message: Span<UInt8>, count: Int) -> [UInt8] {
    prepare()
    defer { Residue.clear() }
    var output = [UInt8](repeating: 0, count: count)
    message.withUnsafeBytes { message in
      _ = crypto_generichash(&output, count, message.start, UInt64(message.count), nil, 0)
    }
    return output
  }

  /// Fills `output`, which has 16…64 bytes, with the keyed BLAKE2b hash of `message`.
  package static func keyedHash(
    _ message: [UInt8], key: borrowing SecretBytes, into output: UnsafeMutableRawBufferPointer
  ) {
    defer { Residue.clear() }
    key.withUnsafeBytes { key in
      _ = crypto_generichash(
        output.start, output.count, message, UInt64(message.count), key.start, key.count)
    }
  }

  package static func keyedHash(_ message: [UInt8], key: borrowing SecretBytes, count: Int) -> [UInt8] {
    var output = [UInt8](repeating: 0, count: count)
    output.withUnsafeMutableBytes { keyedHash(message, key: key, into: $0) }
    return output
  }

  /// Compares in constant time.
  package static func isEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    left.count == right.count && sodium_memcmp(left, right, left.count) == 0
  }

  // MARK: Derivation

  private static let context: [CChar] = Subkey.context.utf8.map { CChar($0) }

  /// Derives a subkey of a 32-byte master key.
  package static func subkey(_ subkey: Subkey, of master: borrowing SecretBytes) -> SecretBytes {
    prepare()
    defer { Residue.clear() }
    return SecretBytes(count: 32) { output in
      master.withUnsafeBytes { master in
        _ = crypto_kdf_derive_from_key(output.start, 32, subkey.rawValue, context, master.start)
      }
    }
  }

  /// Derives a 32-byte key from `secret`, random bytes of any length, with `crypto_kdf` and a `context` of 8 characters.
  static func derivedKey(from secret: borrowing SecretBytes, context: StaticString) -> SecretBytes {
    prepare()
    defer { Residue.clear() }
    let context = context.withUTF8Buffer { $0.map { CChar(bitPattern: $0) } }
    precondition(context.count == Int(crypto_kdf_CONTEXTBYTES))
    // crypto_kdf needs a key of 32 bytes.
    let master = SecretBytes(count: 32) { output in
      secret.withUnsafeBytes { secret in
        _ = crypto_generichash(output.start, 32, secret.start, UInt64(secret.count), nil, 0)
      }
    }
    return SecretBytes(count: 32) { output in
      master.withUnsafeBytes { master in
        _ = crypto_kdf_derive_from_key(output.start, 32, 1, context, master.start)
      }
    }
  }

  /// Stretches a passphrase to 32 bytes with Argon2id 1.3 over `memory` bytes. Returns `nil` if the memory
  /// cannot be allocated.
  package static func stretch(
    _ passphrase: borrowing SecretBytes, salt: [UInt8], passes: Int, memory: Int
  ) -> SecretBytes? {
    prepare()
    defer { Residue.clear() }
    var succeeded = false
    let stretched = SecretBytes(count: 32) { output in
      passphrase.withUnsafeBytes { passphrase in
        succeeded =
          crypto_pwhash(
            output.start, 32, passphrase.characters, UInt64(passphrase.count), salt, UInt64(passes),
            memory, crypto_pwhash_ALG_ARGON2ID13) == 0
      }
    }
    guard succeeded else { return nil }
    return stretched
  }
}

extension SecretBytes {
  borrowing func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R {
    withBytes { $0.withUnsafeBytes(body) }
  }
}

// libsodium rejects null pointers, and an empty buffer has one. Nothing is read or written through the
// pointer that replaces it, because the count beside it is 0.
private let nowhere = 1

extension UnsafeRawBufferPointer {
  var start: UnsafePointer<UInt8> {
    (baseAddress ?? UnsafeRawPointer(bitPattern: nowhere).unsafelyUnwrapped)
      .assumingMemoryBound(to: UInt8.self)
  }
  var characters: UnsafePointer<CChar> {
    UnsafeRawPointer(start).assumingMemoryBound(to: CChar.self)
  }
}

extension UnsafeMutableRawBufferPointer {
  var start: UnsafeMutablePointer<UInt8> {
    (baseAddress ?? UnsafeMutableRawPointer(bitPattern: nowhere).unsafelyUnwrapped)
      .assumingMemoryBound(to: UInt8.self)
  }
  var characters: UnsafeMutablePointer<CChar> {
    UnsafeMutableRawPointer(start).assumingMemoryBound(to: CChar.self)
  }
}
