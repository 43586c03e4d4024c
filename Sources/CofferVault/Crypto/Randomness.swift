package import CofferVaultFormat
internal import CSodium

/// Where nonces, keys, salts and ids come from.
package protocol Randomness: Sendable {
  func fill(_ bytes: UnsafeMutableRawBufferPointer)
}

/// The system's generator, through libsodium. Thread-safe.
package struct SystemRandomness: Randomness {
  package init() {}
  package func fill(_ bytes: UnsafeMutableRawBufferPointer) {
    Sodium.prepare()
    randombytes_buf(bytes.start, bytes.count)
  }
}

extension Randomness {
  package func array(_ count: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      fill(UnsafeMutableRawBufferPointer(buffer))
      filled = count
    }
  }

  package func bytes16() -> Bytes16 {
    array(16).withUnsafeBytes { Bytes16($0) }
  }
}
