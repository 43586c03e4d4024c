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
  private static let digits = ["0123456789ABCDEF", "0123456789abcdef"].map { Array($0.utf8) }

  /// The least length of a piece of a long form.
  private static let pieceLength = 128

  private let block: UnsafeMutableRawBufferPointer?
  /// How many bytes at the beginning of a value are written in every form.
  private let limit: Int
  private let escapedForms = EscapedForm.all
  private let letters = Self.letters
  private var variable = 0
  /// For each kind, the forms of the text whose forms are being written.
  private var forms: [[(range: Range<Int>, sharedBits: Int)]] = [[], []]
  /// Where the form of the value's first two bytes ends, in the pattern that is being written.
  private var beginningEnd = 0
  private(set) var count: Int
  private(set) var patterns: [[RedactionPatterns.Pattern]] = [[], []]

  init(to block: UnsafeMutableRawBufferPointer?, at offset: Int, limit: Int) {
    (self.block, count, self.limit) = (block, offset, limit)
  }

  /// How many bytes at the beginning of each value are searched in every form, for values of these sizes: 64 KiB, or
  /// less if these are more than 2 MiB together.
  static func limit(for sizes: [Int]) -> Int {
    var limit = 65_536
    while limit > 256, sizes.reduce(0, { $0 + min($1, limit) }) > 2_097_152 { limit /= 2 }
    return limit
  }

  /// Adds the patterns for the value of a variable, which is given by its number.
  mutating func add(_ value: SecretBytes, of variable: Int) {
    self.variable = variable
    value.withBytes { bytes in
      // A shell drops final line feeds.
      let end = bytes.indices.last { bytes[$0] != UInt8(ascii: "\n") } ?? -1
      let value = bytes.extracting(first: end + 1)
      guard Self.canRedact(value) else { return }
      let beginning = Self.beginning(of: value, limit: limit)
      let first = value.extracting(first: beginning)
      addForms(of: first)
      if beginning == value.count { addBase64(of: first, withLineFeed: true) }
      eachLine(of: first) { writer, line in
        if line.count < value.count { writer.addForms(of: line) }
      }
      eachLine(of: value.extracting(beginning...)) { writer, line in writer.addPieces(of: line) }
    }
  }

  /// Whether the text has enough bytes besides separators, which are skipped in some forms.
  static func canRedact(_ text: Span<UInt8>) -> Bool {
    text.indices.count { !RedactionPatterns.isSeparator(text[$0]) } >= OutputRedactor.minimumLength
  }

  /// The end of the part of a value that is written in every form: the end of the value, or of its last whole line or
  /// character within the limit.
  private static func beginning(of value: Span<UInt8>, limit: Int) -> Int {
    if value.count <= limit { return value.count }
    if let end = (limit / 2...limit).last(where: { value[$0] == UInt8(ascii: "\n") }) { return end }
    return (limit - 3...limit).last { value[$0] & 0xC0 != 0x80 } ?? limit
  }

  /// Calls `body` with each line that is long enough to be redacted by itself. The line end is left out.
  private mutating func eachLine(of text: Span<UInt8>, _ body: (inout PatternWriter, Span<UInt8>) -> Void) {
    var start = 0
    for end in 0...text.count where end == text.count || text[end] == UInt8(ascii: "\n") {
      let isReturn = end > start && text[end - 1] == UInt8(ascii: "\r")
      let line = text.extracting(start..<(isReturn ? end - 1 : end))
      if line.count >= Self.shortestLine, Self.canRedact(line) { body(&self, line) }
      start = end + 1
    }
  }

  /// Adds the line as it is, in pieces: with a long pattern, much output could be held back.
  private mutating func addPieces(of line: Span<UInt8>) {
    var rest = line
    while !rest.isEmpty {
      let size = rest.count < limit + Self.shortestLine ? rest.count : limit
      addText(rest.extracting(first: size))
      rest = rest.extracting(size...)
    }
  }

  private mutating func addText(_ bytes: Span<UInt8>) {
    forms = [[], []]
    addEach(of: bytes) { writer, byte, _ in writer.append(byte) }
  }

  private mutating func addForms(of bytes: Span<UInt8>) {
    addText(bytes)
    addBase64(of: bytes)
    for digits in Self.digits {
      addEach(of: bytes, isSeparable: true) { writer, byte, _ in writer.append(byte, digits) }
    }
    // A value that is not UTF-8 has no characters whose numbers could be written.
    let isText = bytes.isUTF8
    for form in escapedForms where bytes.indices.contains(where: { form.escapes[Int(bytes[$0])] != .unchanged }) {
      if !isText, form.escapes[0xC0] == .utf16 { continue }
      for digits in Self.digits {
        addEach(of: bytes) { writer, byte, index in
          writer.append(form.escapes[Int(byte)], of: bytes, at: index, digits)
        }
      }
    }
  }

  /// Adds the base64 of the value after 0, 1 or 2 other bytes. Leaves out a character with bits of those bytes: it has
  /// at most four bits of the value, and could be almost any character, so too much would be held back.
  private mutating func addBase64(of bytes: Span<UInt8>, withLineFeed: Bool = false) {
    let size = bytes.count + (withLineFeed ? 1 : 0)
    for (before, alphabet) in [(0, 0), (0, 64), (1, 0), (1, 64), (2, 0), (2, 64)] {
      let start = count
      var (bits, left) = (0, -4 * before % 6)
      for index in 0..<size {
        bits = bits << 8 & 0xFFFF | (index < bytes.count ? Int(bytes[index]) : 0x0A)
        left += 8
        while left >= 6 {
          left -= 6
          append(letters[alphabet + (bits >> left & 63)])
        }
        if index == 1 { beginningEnd = count + (left > 0 ? 1 : 0) }
      }
      let end = count
      let last = bits << (6 - left) & 63
      append(UInt8(last))
      guard add(start..<end, isSeparable: true, sharedBits: left), left > 0 else { continue }
      let padded = count
      beginningEnd += padded - start
      for index in start..<end { append(block?[index] ?? 0) }
      append(letters[alphabet + last])
      for _ in 0..<(6 - left) / 2 { append(UInt8(ascii: "=")) }
      add(padded..<count, isSeparable: true)
    }
  }

  private mutating func append(_ escape: EscapedForm.Escape, of bytes: Span<UInt8>, at index: Int, _ digits: [UInt8]) {
    let byte = bytes[index]
    switch escape {
    case .unchanged: append(byte)
    case .percent:
      append(UInt8(ascii: "%"))
      append(byte, digits)
    case .plus: append(UInt8(ascii: "+"))
    case .backslash:
      append(UInt8(ascii: "\\"))
      append(byte)
    case .letter:
      append(UInt8(ascii: "\\"))
      append(byte == 0x1B ? UInt8(ascii: "E") : Array("abtnvfr".utf8)[Int(byte) - 7])
    case .number: append(utf16: UInt16(byte), digits)
    case .utf16:
      if byte < 0xC0 { return }
      let count = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2
      let scalar = (1..<count).reduce(UInt32(byte) & 0x7F >> UInt32(count)) {
        $0 << 6 | UInt32(bytes[index + $1] & 0x3F)
      }
      for unit in Unicode.Scalar(scalar)?.utf16.map({ $0 }) ?? [] { append(utf16: unit, digits) }
    case .octal: append("\\" + String(Int(byte) + 0o1000, radix: 8).dropFirst())
    case .quoteAfterBackslash: append("'\\''")
    case .quoteInQuotes: append("'\"'\"'")
    case .carriageReturn: append("\r\n")
    }
  }

  private mutating func append(utf16 unit: UInt16, _ digits: [UInt8]) {
    append("\\u")
    append(UInt8(unit >> 8), digits)
    append(UInt8(unit & 0xFF), digits)
  }

  private mutating func append(_ byte: UInt8, _ digits: [UInt8]) {
    append(digits[Int(byte >> 4)])
    append(digits[Int(byte & 15)])
  }

  private mutating func append(_ text: String) { for byte in text.utf8 { append(byte) } }

  private mutating func append(_ byte: UInt8) {
    block?[count] = byte
    count += 1
  }

  /// Adds a pattern of what `write` appends for each byte and its index.
  private mutating func addEach(
    of bytes: Span<UInt8>, isSeparable: Bool = false, _ write: (inout PatternWriter, UInt8, Int) -> Void
  ) {
    let start = count
    for index in bytes.indices {
      write(&self, bytes[index], index)
      if index == 1 { beginningEnd = count }
    }
    add(start..<count, isSeparable: isSeparable)
  }

  /// Adds the form that was written last, and returns `true`; or drops it, if another form of the text is the same. A
  /// long form becomes several patterns: what a place of the output costs must not grow with the length of a value.
  @discardableResult
  private mutating func add(_ range: Range<Int>, isSeparable: Bool, sharedBits: Int = 0) -> Bool {
    let kind = isSeparable ? 1 : 0
    let isKnown = forms[kind].contains { other in
      guard let block, other.range.count == range.count, other.sharedBits == sharedBits else { return false }
      return block[other.range].elementsEqual(block[range])
    }
    if isKnown {
      count = range.lowerBound
      return false
    }
    forms[kind].append((range, sharedBits))
    let pieces = max(1, range.count / Self.pieceLength)
    for piece in 0..<pieces {
      let (start, end) = (range.count * piece / pieces, range.count * (piece + 1) / pieces)
      let beginning = piece == 0 ? beginningEnd - range.lowerBound : 2
      patterns[kind].append(
        .init(
          variable: variable, range: range.lowerBound + start..<range.lowerBound + end,
          beginning: min(beginning, (end - start) / 2), sharedBits: piece == pieces - 1 ? sharedBits : 0,
          isContinuation: piece > 0))
    }
    return true
  }
}
