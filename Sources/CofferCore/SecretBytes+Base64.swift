internal import CSodium

extension SecretBytes {
  /// The bytes as base64 with padding (RFC 4648, section 4), in guarded memory.
  package borrowing func base64() -> SecretBytes {
    _ = GuardedMemory.isReady
    // libsodium terminates the text with a NUL.
    let count = (self.count + 2) / 3 * 4
    let text = SecretBytes(count: count + 1) { block in
      withBytes { bytes in
        bytes.withUnsafeBufferPointer { bytes in
          guard let target = block.bindMemory(to: CChar.self).baseAddress else { return }
          _ = sodium_bin2base64(
            target, block.count, bytes.baseAddress, bytes.count, sodium_base64_VARIANT_ORIGINAL)
        }
      }
    }
    return text.withBytes { SecretBytes(copying: $0.extracting(first: count)) }
  }
}
