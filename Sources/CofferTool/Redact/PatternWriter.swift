internal import Coffer

/// Writes the patterns for values, for their longer lines, and for the forms in which programs print both.
///
/// A first run without a block finds the size, so that all patterns are in one block of guarded memory.
struct PatternWriter {
  /// The least size in bytes of a line that is redacted without the rest of its value.
  static let shortestLine = 8
  /// base64, and then base64url.
  static let letters = ["+/", "-_"].flatMap {
    Array(("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789" + $0).utf8)
  }

  private let block: UnsafeMutableRawBufferPointer?
  private var variable = 0
  /// Where the form of the value's first two bytes ends, in the pattern that is being written.
  private var beginningEnd = 0
  private(set) var count: Int
  private(set) var patterns: [[RedactionPatterns.Pattern]] = [[], []]

  init(to block: UnsafeMutableRawBufferPointer? = nil, at offset: Int = 0) {
    (self.block, count) = (block, offset)
  }

  /// Adds the patterns for the value of a variable, which is given by its number.
  mutating func add(_ value: borrowing SecretBytes, of variable: Int) {
    self.variable = variable
    value.withBytes { bytes in
      // A shell drops final line feeds.
      let end = bytes.indices.last { bytes[$0] != UInt8(ascii: "\n") } ?? -1
      let value = bytes.extracting(first: end + 1)
      guard Self.canRedact(value) else { return }
      addForms(of: value)
      addBase64(of: value, withLineFeed: true)
      // A terminal shows a carriage return before each line feed.
      addEscaped(value) { value[$0] == UInt8(ascii: "\n") ? "\r\n" : nil }
      var start = 0
      for end in 0...value.count where end == value.count || value[end] == UInt8(ascii: "\n") {
        let isReturn = end > start && value[end - 1] == UInt8(ascii: "\r")
        let line = value.extracting(start..<(isReturn ? end - 1 : end))
        let isPart = line.count >= Self.shortestLine && line.count < value.count
        if isPart, Self.canRedact(line) { addForms(of: line) }
        start = end + 1
      }
    }
  }

  /// Whether the text has enough bytes besides separators, which are skipped in some forms.
  static func canRedact(_ text: Span<UInt8>) -> Bool {
    text.indices.count { !RedactionPatterns.isSeparator(text[$0]) } >= OutputRedactor.minimumLength
  }

  private mutating func addForms(of bytes: Span<UInt8>) {
    addEach(of: bytes) { writer, index in writer.append(bytes[index]) }
    addBase64(of: bytes)
    for digits in [{ $0.hexadecimal }, { $0.hexadecimal.lowercased() }] as [(UInt8) -> String] {
      addEach(of: bytes, isSeparable: true) { writer, index in writer.append(digits(bytes[index])) }
      addPercentEncoded(bytes, digits)
      addJSON(bytes, digits)
    }
    addShellWords(bytes)
  }

  /// Adds the base64 in a text with 0, 1 or 2 bytes before the value, without a character that also has bits of those:
  /// it has at most four bits of the value, and it could be almost any character, which would have to be held back.
  private mutating func addBase64(of bytes: Span<UInt8>, withLineFeed: Bool = false) {
    let size = bytes.count + (withLineFeed ? 1 : 0)
    func byte(_ index: Int) -> Int { index < bytes.count ? Int(bytes[index]) : index < size ? 0x0A : 0 }
    func bits(from bit: Int) -> Int { (byte(bit / 8) << 8 | byte(bit / 8 + 1)) >> (10 - bit % 8) & 63 }
    for (start, before) in [(0, 0), (0, 1), (0, 2), (64, 0), (64, 1), (64, 2)] {
      let sharedBits = 8 * (before + size) % 6
      func add(_ sharedBits: Int, to end: Int, padding: String = "") {
        addPattern(isSeparable: true, sharedBits: sharedBits) { writer in
          for bit in stride(from: 4 * before % 6, to: end, by: 6) {
            writer.append(Self.letters[start + bits(from: bit)])
            if bit < 16 { writer.beginningEnd = writer.count }
          }
          writer.append(padding)
        }
      }
      add(sharedBits, to: 8 * size - sharedBits)
      append(UInt8(bits(from: 8 * size - sharedBits)))
      if sharedBits > 0 { add(0, to: 8 * size, padding: sharedBits == 2 ? "==" : "=") }
    }
  }

  /// As RFC 3986, JavaScript's encodeURIComponent, Python's quote, Go's user names in URLs, and forms do.
  private mutating func addPercentEncoded(_ bytes: Span<UInt8>, _ digits: (UInt8) -> String) {
    for kept in ["-._~", "-._~!'()*", "-._~/", "-._~$&+,;=", "*-._ "] {
      addEscaped(bytes) { index in
        if bytes[index] == UInt8(ascii: " "), kept.contains(" ") { return "+" }
        let isKept = bytes[index].isASCIILetterOrDigit || kept.utf8.contains(bytes[index])
        return isKept ? nil : "%" + digits(bytes[index])
      }
    }
  }

  /// With and without the escapes of a slash, and as numbers of control characters, of other characters than ASCII, and
  /// of characters with a meaning in HTML.
  private mutating func addJSON(_ bytes: Span<UInt8>, _ digits: (UInt8) -> String) {
    let isText = bytes.isUTF8
    for (html, style) in ["", "<>&", "<>&'+`\""].flatMap({ html in (0..<8).map { (html, $0) } }) {
      let (escapesSlash, escapesNonASCII, hasNumbers) = (style & 1 != 0, style & 2 != 0, style & 4 != 0)
      // A value that is not UTF-8 has no characters whose numbers could be written.
      if escapesNonASCII && !isText { continue }
      addEscaped(bytes) { index in
        switch bytes[index] {
        case 0x80...: escapesNonASCII ? Self.unicodeEscape(at: index, of: bytes, digits) : nil
        case let byte where html.utf8.contains(byte) || hasNumbers && (byte < 0x20 || byte == 0x7F):
          "\\u00" + digits(byte)
        case UInt8(ascii: "/"): escapesSlash ? "\\/" : nil
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): Self.backslashed(bytes[index])
        case 8, 9, 10, 12, 13: Self.shortEscape(bytes[index])
        case let byte: byte < 0x20 ? "\\u00" + digits(byte) : nil
        }
      }
    }
  }

  /// The character that begins at the index, in UTF-16. Empty for its other bytes.
  private static func unicodeEscape(at index: Int, of bytes: Span<UInt8>, _ digits: (UInt8) -> String)
    -> String
  {
    if bytes[index] < 0xC0 { return "" }
    let count = bytes[index] >= 0xF0 ? 4 : bytes[index] >= 0xE0 ? 3 : 2
    return bytes.extracting(index...).withUnsafeBufferPointer { rest in
      String(decoding: rest.prefix(count), as: UTF8.self).utf16.map {
        "\\u" + digits(UInt8($0 >> 8)) + digits(UInt8($0 & 0xFF))
      }.joined()
    }
  }

  private mutating func addShellWords(_ bytes: Span<UInt8>) {
    for quote in ["'\\''", "'\"'\"'"] { addEscaped(bytes) { bytes[$0] == UInt8(ascii: "'") ? quote : nil } }
    // In double quotes, and as bash and Ruby write a word without quotes.
    for special in ["\"$\\`", " !\"$&'()*,;<>?[\\]^`{|}", " !\"#$%&'()*;<=>?[\\]^`{|}~"] {
      addEscaped(bytes) { special.utf8.contains(bytes[$0]) ? Self.backslashed(bytes[$0]) : nil }
    }
    // In $'…'.
    for escapesNonASCII in [false, true] {
      addEscaped(bytes) { index in
        switch bytes[index] {
        case UInt8(ascii: "'"), UInt8(ascii: "\\"): Self.backslashed(bytes[index])
        case 7...13: Self.shortEscape(bytes[index])
        case 0x1B: "\\E"
        case let byte where byte < 0x20 || byte == 0x7F || byte >= 0x80 && escapesNonASCII:
          "\\" + String(Int(byte) + 0o1000, radix: 8).dropFirst()
        default: nil
        }
      }
    }
  }

  private static func backslashed(_ byte: UInt8) -> String { "\\" + String(Unicode.Scalar(byte)) }

  /// The escape of a control character from BEL to CR with a letter.
  private static func shortEscape(_ byte: UInt8) -> String {
    backslashed(Array("abtnvfr".utf8)[Int(byte) - 7])
  }

  /// Adds the text that has what `escape` returns instead of the byte at an index, unless this is always `nil`.
  private mutating func addEscaped(_ bytes: Span<UInt8>, _ escape: (Int) -> String?) {
    guard bytes.indices.contains(where: { escape($0) != nil }) else { return }
    addEach(of: bytes) { writer, index in
      if let text = escape(index) { writer.append(text) } else { writer.append(bytes[index]) }
    }
  }

  /// Adds a pattern of what `write` appends for the byte at each index.
  private mutating func addEach(
    of bytes: Span<UInt8>, isSeparable: Bool = false, _ write: (inout PatternWriter, Int) -> Void
  ) {
    addPattern(isSeparable: isSeparable) { writer in
      for index in bytes.indices {
        write(&writer, index)
        if index == 1 { writer.beginningEnd = writer.count }
      }
    }
  }

  private mutating func addPattern(
    isSeparable: Bool = false, sharedBits: Int = 0, _ write: (inout PatternWriter) -> Void
  ) {
    let start = count
    write(&self)
    patterns[isSeparable ? 1 : 0].append(
      .init(
        variable: variable, range: start..<count, beginning: min(beginningEnd - start, (count - start) / 2),
        sharedBits: sharedBits))
  }

  private mutating func append(_ byte: UInt8) {
    block?[count] = byte
    count += 1
  }

  private mutating func append(_ text: String) { for byte in text.utf8 { append(byte) } }
}
