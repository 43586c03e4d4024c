internal import CofferCore

/// Text that is safe to show on a terminal. Anyone can choose a name; it must not move the cursor, forge or reorder a
/// line, or look like another name.
extension String {
  /// The text, with an escape for every character that a terminal obeys, reorders or does not show.
  var printable: String {
    escaped { scalar in
      guard scalar.isUnsafeOnTerminal else { return nil }
      return scalar.shortEscape ?? "\\u{" + String(scalar.value, radix: 16, uppercase: true) + "}"
    }
  }

  /// JSON text with these characters in JSON's own escapes, except for the line feeds between its elements.
  var printableJSON: String {
    escaped { $0.isUnsafeOnTerminal && $0 != "\n" ? $0.codeInJSON : nil }
  }

  /// The text with each character replaced by the result of `escape`. A character for which it is `nil` is kept.
  func escaped(_ escape: (Unicode.Scalar) -> String?) -> String {
    var result = ""
    for scalar in unicodeScalars {
      if let text = escape(scalar) { result += text } else { result.unicodeScalars.append(scalar) }
    }
    return result
  }
}

extension Unicode.Scalar {
  /// Whether a terminal may obey, reorder or hide the character: control characters (Cc), format characters (Cf:
  /// directions, zero width, tags), separators of lines and paragraphs (Zl, Zp), and everything that Unicode asks
  /// programs not to display (Default_Ignorable_Code_Point: variation selectors, fillers).
  var isUnsafeOnTerminal: Bool {
    if isASCII { return value < 0x20 || value == 0x7F }
    return switch properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate: true
    default: properties.isDefaultIgnorableCodePoint
    }
  }
}

extension Unicode.Scalar {
  /// The escape of a quote, a backslash, a line end or a tab in two characters.
  var shortEscape: String? {
    switch self {
    case "\"", "\\": "\\" + String(self)
    case "\n": "\\n"
    case "\r": "\\r"
    case "\t": "\\t"
    default: nil
    }
  }

  /// What stands for the character in a JSON string, or `nil` if it stays as it is.
  var escapeInJSON: String? { shortEscape ?? (isUnsafeOnTerminal ? codeInJSON : nil) }

  fileprivate var codeInJSON: String {
    String(self).utf16.map { unit in
      "\\u" + (UInt8(unit >> 8).hexadecimal + UInt8(unit & 0xFF).hexadecimal).lowercased()
    }.joined()
  }
}

extension [String] {
  /// Up to `most` of these texts for a message, and the number of the others.
  func listed(most: Int) -> String {
    let shown = prefix(most).joined(separator: ", ")
    return count > most ? "\(shown) and \(count - most) more" : shown
  }
}
