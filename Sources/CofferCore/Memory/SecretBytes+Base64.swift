internal import CSodium

extension SecretBytes {
  private static func variant(isURLSafe: Bool) -> Int32 {
    isURLSafe ? sodium_base64_VARIANT_URLSAFE_NO_PADDING : sodium_base64_VARIANT_ORIGINAL
  }

  /// The bytes in guarded memory, as base64 with padding or as base64url without padding (RFC 4648, sections 4 and 5).
  package func base64(isURLSafe: Bool = false) -> SecretBytes {
    defer { Residue.clear() }
    let variant = Self.variant(isURLSafe: isURLSafe)
    return SecretBytes(capacity: sodium_base64_encoded_len(count, variant)) { block in
      withBytes { bytes in
        bytes.withUnsafeBufferPointer { bytes in
          guard let target = block.bindMemory(to: CChar.self).baseAddress else { return }
          _ = sodium_bin2base64(target, block.count, bytes.baseAddress, bytes.count, variant)
        }
      }
      // libsodium terminates the text with a NUL.
      return block.count - 1
    }
  }

  /// Decodes what ``base64(isURLSafe:)`` returns, or returns `nil` for any other text.
  package static func decodingBase64(_ text: Span<UInt8>, isURLSafe: Bool = false) -> SecretBytes? {
    defer { Residue.clear() }
    var isValid = false
    let decoded = SecretBytes(capacity: text.count * 3 / 4) { block in
      text.withUnsafeBytes { text in
        var count = 0
        guard let target = block.bindMemory(to: UInt8.self).baseAddress,
          let source = text.bindMemory(to: CChar.self).baseAddress
        else { return 0 }
        isValid =
          sodium_base642bin(
            target, block.count, source, text.count, nil, &count, nil, variant(isURLSafe: isURLSafe)) == 0
        return count
      }
    }
    // libsodium 1.0.18 decodes some bytes above 0x7F.
    guard isValid, decoded.base64(isURLSafe: isURLSafe).isEqual(to: SecretBytes(text)) else { return nil }
    return decoded
  }
}
