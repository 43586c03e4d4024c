import CofferVault
import Synchronization

/// Repeatable random numbers for tests: SplitMix64.
package struct SeededRandom: RandomNumberGenerator {
  private var state: UInt64
  package init(seed: UInt64) { state = seed }

  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var value = state
    value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
    return value ^ (value >> 31)
  }
}

/// Repeatable randomness for a vault. Thread-safe.
package final class SeededRandomness: Randomness {
  private let random: Mutex<SeededRandom>
  /// Returns the same nonce each time, so that a test can check that this is detected.
  private let hasFixedNonces: Bool

  package init(seed: UInt64, hasFixedNonces: Bool = false) {
    random = Mutex(SeededRandom(seed: seed))
    self.hasFixedNonces = hasFixedNonces
  }

  package func fill(_ bytes: UnsafeMutableRawBufferPointer) {
    if hasFixedNonces, bytes.count == 24 {
      for index in bytes.indices { bytes[index] = 0x55 }
      return
    }
    random.withLock { random in
      for index in bytes.indices { bytes[index] = UInt8.random(in: .min ... .max, using: &random) }
    }
  }
}
