internal import Coffer

/// How a template writes a value. The name stands after a vertical bar.
enum TemplateFilter: String, CaseIterable {
  /// A JSON string with its quotation marks.
  case json
  /// Base64 on one line.
  case base64
  /// Percent-encoded: every byte but letters, digits and `-._~` (RFC 3986, section 2.3).
  case url
  /// One word of a POSIX shell, in single quotes.
  case shell

  /// Why the filter may be unable to write a value: the end of a sentence.
  var obstacle: String { self == .json ? "it is not UTF-8" : "it contains a NUL" }

  /// The value as the filter writes it, or `nil` because of the ``obstacle``.
  func applied(to value: SecretBytes) -> SecretBytes? {
    value.withBytes { bytes in
      switch self {
      case .base64: return value.base64()
      case .url: return Self.escaped(bytes) { $0.isUnreservedInURI ? nil : "%" + $0.hexadecimal }
      case .json:
        guard let text = try? UTF8Span(validating: bytes) else { return nil }
        return SecretWriter.bytes { $0.appendJSON(text) }
      case .shell:
        if bytes.contains(0) { return nil }
        return Self.escaped(bytes, in: "'") { $0 == UInt8(ascii: "'") ? "'\\''" : nil }
      }
    }
  }

  /// The escaped bytes between two `quotes`. `escape` returns the text for a byte, or `nil` for one that stays as is.
  static func escaped(_ bytes: Span<UInt8>, in quotes: String = "", _ escape: (UInt8) -> String?) -> SecretBytes {
    SecretWriter.bytes { writer in
      writer.append(quotes)
      for index in bytes.indices {
        if let text = escape(bytes[index]) { writer.append(text) } else { writer.append(bytes[index]) }
      }
      writer.append(quotes)
    }
  }
}
