// Part of the mutated module that draws random bytes.
internal import CMutants

/// The source of randomness, or one whose bytes are all the same.
func mutantRandomness(_ number: Int32, _ source: any Randomness) -> any Randomness {
  coffer_mutant(number) ? ConstantRandomness() : source
}

private struct ConstantRandomness: Randomness {
  func fill(_ bytes: UnsafeMutableRawBufferPointer) {
    bytes.initializeMemory(as: UInt8.self, repeating: 0x5A)
  }
}
