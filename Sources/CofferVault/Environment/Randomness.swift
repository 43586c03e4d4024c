internal import CofferCore
package import CofferVaultFormat

/// The source of nonces, keys, salts and ids.
package protocol Randomness: Sendable {
  func fill(_ bytes: UnsafeMutableRawBufferPointer)
}

/// The system's random number generator, through libsodium. Thread-safe.
package struct SystemRandomness: Randomness {
  package init() {}
  package func fill(_ bytes: UnsafeMutableRawBufferPointer) { SecureRandom.fill(bytes) }
}

extension Randomness {
  package func array(_ count: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    bytes.withUnsafeMutableBytes { fill($0) }
    return bytes
  }

  package func bytes16() -> Bytes16 {
    array(16).withUnsafeBytes { Bytes16($0) }
  }
}
