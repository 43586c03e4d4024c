internal import CofferVaultFormat
internal import CSodium
package import CofferCore

/// The calls of libsodium that the vault is made of, each with Swift types and nothing more. No other
/// file of this module's derives, seals, opens or hashes. All are thread-safe.
package enum Sodium {
  private static let isReady: Bool = {
    guard sodium_init() >= 0 else { fatalError("libsodium could not be initialised: no randomness?") }
    return true
  }()

  /// Initialises libsodium, once. Each entry below calls it where nothing before it can have.
  static func prepare() { _ = isReady }

  /// Wipes the stack below the caller, where libsodium's hash and its base64 leave what they were given: it
  /// wipes those of its frames that hold keys of ciphers, and not these. 16 KiB are several times what they take.
  static func wipeStack() { sodium_stackzero(16_384) }

  // MARK: XChaCha20-Poly1305-IETF

  /// `nonce ‖ ciphertext ‖ tag`, with a fresh nonce.
  package static func seal(
    _ plaintext: Span<UInt8>,
    associatedData: [UInt8],
    key: borrowing SecretBytes,
    randomness: any Randomness
  ) -> [UInt8] {
    prepare()
    let count = plaintext.count + Layout.sealOverhead
    return [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      let output = UnsafeMutableRawBufferPointer(start: buffer.baseAddress, count: count)
      randomness.fill(UnsafeMutableRawBufferPointer(rebasing: output[..<Layout.nonceLength]))
      plaintext.withUnsafeBytes { plaintext in
        key.withBytes { key in
          key.withUnsafeBytes { key in
            // It fails only where the message is too long for the cipher: 256 GiB.
            _ = crypto_aead_xchacha20poly1305_ietf_encrypt(
              output.start + Layout.nonceLength,
              nil,
              plaintext.start,
              UInt64(plaintext.count),
              associatedData,
              UInt64(associatedData.count),
              nil,
              output.start,
              key.start
            )
          }
        }
      }
      filled = count
    }
  }

  /// Opens a seal into `output`, which has 40 bytes less than it. `false`: it is not authentic.
  package static func open(
    _ sealed: Span<UInt8>,
    associatedData: [UInt8],
    key: borrowing SecretBytes,
    into output: UnsafeMutableRawBufferPointer
  ) -> Bool {
    guard sealed.count == output.count + Layout.sealOverhead else { return false }
    return sealed.withUnsafeBytes { sealed in
      key.withBytes { key in
        key.withUnsafeBytes { key in
          crypto_aead_xchacha20poly1305_ietf_decrypt(
            output.start,
            nil,
            nil,
            sealed.start + Layout.nonceLength,
            UInt64(sealed.count - Layout.nonceLength),
            associatedData,
            UInt64(associatedData.count),
            sealed.start,
            key.start
          ) == 0
        }
      }
    }
  }

  /// The plaintext of a seal of data that is not secret enough for guarded memory: names, places. `nil`: it
  /// is not authentic.
  package static func open(
    _ sealed: Span<UInt8>,
    associatedData: [UInt8],
    key: borrowing SecretBytes
  ) -> [UInt8]? {
    guard sealed.count >= Layout.sealOverhead else { return nil }
    var isAuthentic = false
    let plaintext = [UInt8](unsafeUninitializedCapacity: sealed.count - Layout.sealOverhead) {
      buffer,
      count in
      count = sealed.count - Layout.sealOverhead
      // Not `buffer` itself: its capacity may be larger than what was asked for.
      let output = UnsafeMutableRawBufferPointer(start: buffer.baseAddress, count: count)
      isAuthentic = open(sealed, associatedData: associatedData, key: key, into: output)
    }
    return isAuthentic ? plaintext : nil
  }

  // MARK: BLAKE2b

  /// BLAKE2b of `message` with `count` bytes of output, 16…64.
  package static func hash(_ message: Span<UInt8>, count: Int) -> [UInt8] {
    prepare()
    var output = [UInt8](repeating: 0, count: count)
    message.withUnsafeBytes { message in
      _ = crypto_generichash(&output, count, message.start, UInt64(message.count), nil, 0)
    }
    return output
  }

  /// Keyed BLAKE2b of `message` with as many bytes of output as `output` has, 16…64.
  package static func keyedHash(
    _ message: [UInt8],
    key: borrowing SecretBytes,
    into output: UnsafeMutableRawBufferPointer
  ) {
    key.withBytes { key in
      key.withUnsafeBytes { key in
        _ = crypto_generichash(
          output.start,
          output.count,
          message,
          UInt64(message.count),
          key.start,
          key.count
        )
      }
    }
  }

  package static func keyedHash(_ message: [UInt8], key: borrowing SecretBytes, count: Int) -> [UInt8] {
    var output = [UInt8](repeating: 0, count: count)
    output.withUnsafeMutableBytes { keyedHash(message, key: key, into: $0) }
    return output
  }

  /// Whether both are equal, in constant time.
  package static func isEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    left.count == right.count && sodium_memcmp(left, right, left.count) == 0
  }

  // MARK: Derivation

  /// Context of every subkey: `coffer01`.
  private static let context: [CChar] = "coffer01".utf8.map { CChar($0) }

  /// Subkey `number` of a 32-byte master key.
  package static func subkey(_ number: UInt64, of master: borrowing SecretBytes) -> SecretBytes {
    prepare()
    return SecretBytes(count: 32) { output in
      master.withBytes { master in
        master.withUnsafeBytes { master in
          _ = crypto_kdf_derive_from_key(output.start, 32, number, context, master.start)
        }
      }
    }
  }

  /// Argon2id 1.3 of a passphrase, over `memory` bytes: 32 bytes. `nil`: the memory cannot be had.
  package static func stretch(
    _ passphrase: borrowing SecretBytes,
    salt: [UInt8],
    passes: Int,
    memory: Int
  ) -> SecretBytes? {
    prepare()
    var succeeded = false
    let stretched = SecretBytes(count: 32) { output in
      passphrase.withBytes { passphrase in
        passphrase.withUnsafeBytes { passphrase in
          succeeded =
            crypto_pwhash(
              output.start,
              32,
              passphrase.characters,
              UInt64(passphrase.count),
              salt,
              UInt64(passes),
              memory,
              crypto_pwhash_ALG_ARGON2ID13
            ) == 0
        }
      }
    }
    guard succeeded else { return nil }
    return stretched
  }

  // MARK: Padding (ISO/IEC 7816-4)

  /// Appends the padding that brings what `bytes` has from `start` on to a multiple of the unit.
  package static func pad(_ bytes: inout [UInt8], from start: Int = 0) {
    let count = bytes.count - start
    bytes.append(0x80)
    bytes.append(contentsOf: repeatElement(0, count: Layout.padded(count) - count - 1))
  }

  /// How many bytes of a padded plaintext are its own. `nil`: it is not padded as it must be.
  package static func unpaddedCount(_ bytes: UnsafeRawBufferPointer) -> Int? {
    var count = 0
    guard
      sodium_unpad(&count, bytes.start, bytes.count, Layout.paddingUnit) == 0,
      Layout.padded(count) == bytes.count
    else { return nil }
    return count
  }
}

// libsodium takes no null pointer, and Swift gives one for an empty buffer. Nothing is read or written
// through what stands in for it, because the count that goes along is 0.
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
}
