internal import CofferCore

/// A form in which programs write text: how each byte is written.
struct EscapedForm {
  enum Escape {
    case unchanged
    /// `%2F`
    case percent
    /// `+` for a space
    case plus
    /// A backslash before the byte.
    case backslash
    /// A backslash and a letter, for the control characters from BEL to CR and for ESC.
    case letter
    /// `\u001F`
    case number
    /// The character that begins with this byte, in UTF-16: `\uD83D\uDD11`. Nothing for the character's other bytes.
    case utf16
    /// `\177`
    case octal
    /// A single quote, as `'\''`.
    case quoteAfterBackslash
    /// A single quote, as `'"'"'`.
    case quoteInQuotes
    /// A carriage return before the line feed.
    case carriageReturn
  }

  /// The escape of each byte, by its number.
  let escapes: [Escape]

  private init(_ escape: (UInt8) -> Escape) { escapes = (0...255).map(escape) }

  static let all = percentEncoded + json + shellWords + onTerminal

  /// As RFC 3986, JavaScript's encodeURIComponent and encodeURI, Python's quote, Go's user names, parts of paths and
  /// paths in URLs do; and as forms, Python's urlencode with Go's QueryEscape, and PHP's urlencode do.
  private static let percentEncoded = [
    "-._~", "-._~!'()*", "-._~!'()*;/?:@&=+$,#", "-._~/", "-._~$&+,;=", "-._~$&+:=@", "-._~$&+,/:;=@", "*-._ ", "-._~ ",
    "-._ ",
  ].map { kept in
    EscapedForm { byte in
      if !byte.isASCIILetterOrDigit && !kept.utf8.contains(byte) { return .percent }
      return byte == UInt8(ascii: " ") ? .plus : .unchanged
    }
  }

  /// With and without escapes for slashes, and with and without numbers for control characters, for non-ASCII
  /// characters and for characters with a meaning in HTML, as Go, Flask, Gson, PHP and .NET choose them.
  private static let json = ["", "<>&", "<>&'", "<>&'=", "<>&'\"", "<>&'+`\"", "'", "\""].flatMap { html in
    (0..<8).map { style in
      let (escapesSlash, escapesNonASCII, hasNumbers) = (style & 1 != 0, style & 2 != 0, style & 4 != 0)
      return EscapedForm { byte in
        switch byte {
        case 0x80...: escapesNonASCII ? .utf16 : .unchanged
        case _ where html.utf8.contains(byte) || hasNumbers && (byte < 0x20 || byte == 0x7F): .number
        case UInt8(ascii: "/"): escapesSlash ? .backslash : .unchanged
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): .backslash
        case 8, 9, 10, 12, 13: .letter
        default: byte < 0x20 ? .number : .unchanged
        }
      }
    }
  }

  /// In single quotes; in double quotes, and as bash and Ruby write a word without quotes; and in `$'…'`.
  private static let shellWords =
    [Escape.quoteAfterBackslash, .quoteInQuotes].map { quote in
      EscapedForm { $0 == UInt8(ascii: "'") ? quote : .unchanged }
    }
    + ["\"$\\`", " !\"$&'()*,;<>?[\\]^`{|}", " !\"#$%&'()*;<=>?[\\]^`{|}~"].map { special in
      EscapedForm { special.utf8.contains($0) ? .backslash : .unchanged }
    }
    + [false, true].map { escapesNonASCII in
      EscapedForm { byte in
        switch byte {
        case UInt8(ascii: "'"), UInt8(ascii: "\\"): .backslash
        case 7...13, 0x1B: .letter
        case _ where byte < 0x20 || byte == 0x7F || byte >= 0x80 && escapesNonASCII: .octal
        default: .unchanged
        }
      }
    }

  /// A terminal shows a carriage return before each line feed.
  private static let onTerminal = [EscapedForm { $0 == UInt8(ascii: "\n") ? .carriageReturn : .unchanged }]
}
