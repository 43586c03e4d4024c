internal import CSodium

/// Random numbers from libsodium, which takes them from the system.
package enum SecureRandom {
  /// Returns a number from 0 up to, but not including, `bound`, each with the same probability. `bound` is at
  /// least 1 and at most 2^32 − 1. Thread-safe.
  package static func number(below bound: Int) -> Int {
    _ = GuardedMemory.isReady
    return Int(randombytes_uniform(UInt32(bound)))
  }
}
