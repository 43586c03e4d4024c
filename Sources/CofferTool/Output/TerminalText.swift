/// Text that is safe to show on a terminal. Anyone can choose a name; it must not move the cursor, forge or
/// reorder a line, or look like another name.
extension String {
  /// The text with every character that a terminal obeys, reorders or does not show written as an escape.
  var printable: String {
    var result = ""
    for scalar in unicodeScalars {
      switch scalar {
      case "\n": result += "\\n"
      case "\r": result += "\\r"
      case "\t": result += "\\t"
      case _ where scalar.isUnsafeOnTerminal:
        result += "\\u{" + String(scalar.value, radix: 16, uppercase: true) + "}"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }

  /// JSON text with the same characters, except line feeds between its elements, in JSON's own escapes.
  var printableJSON: String {
    var result = ""
    for scalar in unicodeScalars {
      guard scalar.isUnsafeOnTerminal && scalar != "\n" else {
        result.unicodeScalars.append(scalar)
        continue
      }
      for unit in String(scalar).utf16 {
        let digits = String(unit, radix: 16)
        result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      }
    }
    return result
  }
}

extension Unicode.Scalar {
  /// Whether a terminal may obey, reorder or hide the character: control characters (Cc), format characters
  /// (Cf: directions, zero width, tags), separators of lines and paragraphs (Zl, Zp), and everything that
  /// Unicode asks programs not to display (Default_Ignorable_Code_Point: variation selectors, fillers).
  var isUnsafeOnTerminal: Bool {
    switch properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate: true
    default: properties.isDefaultIgnorableCodePoint
    }
  }
}
