extension String {
  /// The text with control characters, and characters that reorder or break lines, escaped. Anyone can choose
  /// a name; it must not move the cursor or forge a line.
  var printable: String {
    var result = ""
    for scalar in unicodeScalars {
      switch scalar {
      case "\n": result += "\\n"
      case "\r": result += "\\r"
      case "\t": result += "\\t"
      case _ where scalar.isTerminalControl:
        result += "\\u{" + String(scalar.value, radix: 16, uppercase: true) + "}"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}

extension Unicode.Scalar {
  /// C0, DEL and C1 controls; bidirectional marks, embeddings and isolates; line and paragraph separators.
  var isTerminalControl: Bool {
    switch value {
    case 0...0x1F, 0x7F...0x9F, 0x061C, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069: true
    default: false
    }
  }
}
