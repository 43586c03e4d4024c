internal import CSodium

extension SecretBytes {
  /// The bytes as base64 with padding (RFC 4648, section 4), in guarded memory.
  package borrowing func base64() -> SecretBytes {
    _ = GuardedMemory.isReady
    defer { Residue.clear() }
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

  /// Decodes base64 with padding, or returns `nil` if `text` is not the base64 of any bytes.
  package static func decodingBase64(_ text: Span<UInt8>) -> SecretBytes? {
    _ = GuardedMemory.isReady
    defer { Residue.clear() }
    var count = 0
    var isValid = false
    let bytes = SecretBytes(count: text.count / 4 * 3) { block in
      text.withUnsafeBytes { text in
        guard let target = block.bindMemory(to: UInt8.self).baseAddress,
          let source = text.bindMemory(to: CChar.self).baseAddress
        else { return }
        let result = sodium_base642bin(
          target, block.count, source, text.count, nil, &count, nil, sodium_base64_VARIANT_ORIGINAL)
        isValid = result == 0
      }
    }
    guard isValid else { return nil }
    let decoded = bytes.withBytes { SecretBytes(copying: $0.extracting(first: count)) }
    // libsodium 1.0.18 decodes some bytes above 0x7F.
    let isCanonical = decoded.base64().withBytes { again in
      again.count == text.count && again.indices.allSatisfy { again[$0] == text[$0] }
    }
    if !isCanonical { return nil }
    return decoded
  }
}
