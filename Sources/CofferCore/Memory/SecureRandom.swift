internal import CSodium

/// Random bytes and numbers from libsodium, which takes them from the system. Thread-safe.
package enum SecureRandom {
  package static func fill(_ bytes: UnsafeMutableRawBufferPointer) {
    _ = GuardedMemory.isReady
    if let start = bytes.baseAddress { randombytes_buf(start, bytes.count) }
  }

  /// Returns a number from 0 up to, but not including, `bound`, each with the same probability. `bound` is at least 1
  /// and at most 2^32 − 1.
  package static func number(below bound: Int) -> Int {
    _ = GuardedMemory.isReady
    return Int(randombytes_uniform(UInt32(bound)))
  }
}
