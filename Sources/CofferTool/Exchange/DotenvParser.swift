internal import Coffer
internal import CofferConfiguration

/// Parses the text of a ``Dotenv`` file. Values never leave guarded memory.
struct DotenvParser {
  private var index = 0
  private var line = 1
  /// The start of the current entry.
  private var start = (line: 1, index: 0)

  private func problem(_ text: String) -> LineProblem { LineProblem(line: start.line, text: text) }

  /// Returns the entries and the invalid lines. Continues after an invalid line, so that all of them are reported.
  static func parse(_ bytes: Span<UInt8>) -> (entries: [Dotenv.Entry], problems: [LineProblem]) {
    var parser = DotenvParser()
    var entries: [Dotenv.Entry] = []
    var problems: [LineProblem] = []
    var lines: [String: Int] = [:]
    // Some editors begin a file with a byte order mark.
    if bytes.starts(with: "\u{FEFF}") { parser.index = 3 }
    while parser.index < bytes.count {
      parser.start = (parser.line, parser.index)
      do throws(LineProblem) {
        guard let (name, value) = try parser.assignment(bytes) else { continue }
        if let other = lines.updateValue(parser.start.line, forKey: name) {
          problems.append(parser.problem("repeats the name \(name) of line \(other)"))
        }
        entries.append(Dotenv.Entry(name: name, value: value, line: parser.start.line))
      } catch {
        problems.append(error)
        // Continues after the entry's first line, because the following lines may be separate entries.
        (parser.line, parser.index) = parser.start
        parser.skipLine(bytes)
      }
    }
    return (entries, problems)
  }

  /// Parses one line, or several if the value contains line ends. Returns `nil` for a blank line or a comment.
  private mutating func assignment(_ bytes: Span<UInt8>) throws(LineProblem) -> (name: String, value: SecretBytes)? {
    skipBlanks(bytes)
    if atLineEnd(bytes) || peek(bytes) == UInt8(ascii: "#") {
      skipLine(bytes)
      return nil
    }
    var name = name(bytes)
    if name == "export", Self.isBlank(peek(bytes)) {
      skipBlanks(bytes)
      name = self.name(bytes)
    }
    guard EnvironmentAssignment.isVariableName(name) else {
      throw problem("does not begin with a name of letters, digits and underscores")
    }
    // Readers that accept blanks before the equals sign also drop those after it.
    let hasBlanks = Self.isBlank(peek(bytes))
    skipBlanks(bytes)
    guard peek(bytes) == UInt8(ascii: "=") else { throw problem("has no equals sign after its name") }
    index += 1
    if hasBlanks {
      let start = index
      skipBlanks(bytes)
      // A comment begins after a blank.
      if index > start, peek(bytes) == UInt8(ascii: "#") { index -= 1 }
    }
    let value =
      if let quote = peek(bytes), "'\"".utf8.contains(quote) { try quoted(quote, bytes) } else { try bare(bytes) }
    let end = index
    skipBlanks(bytes)
    guard atLineEnd(bytes) || (index > end && peek(bytes) == UInt8(ascii: "#")) else {
      throw problem("has text after its value: quote the whole value")
    }
    skipLine(bytes)
    return (name, value)
  }

  private mutating func name(_ bytes: Span<UInt8>) -> String {
    let start = index
    while let byte = peek(bytes), !Self.isBlank(byte), byte != UInt8(ascii: "="), !atLineEnd(bytes) {
      index += 1
    }
    return bytes.extracting(start..<index).withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
  }

  private mutating func bare(_ bytes: Span<UInt8>) throws(LineProblem) -> SecretBytes {
    let start = index
    while let byte = peek(bytes), !Self.isBlank(byte), !atLineEnd(bytes) {
      if "'\"$\\`".utf8.contains(byte) || byte == 0 {
        throw problem(
          "has an unquoted value with a quote, $, backslash or backquote: enclose the value in single quotes")
      }
      index += 1
    }
    return SecretBytes(bytes.extracting(start..<index))
  }

  /// The value between two of `quote`. Only double quotes have escapes.
  private mutating func quoted(_ quote: UInt8, _ bytes: Span<UInt8>) throws(LineProblem) -> SecretBytes {
    let isDouble = quote == UInt8(ascii: "\"")
    index += 1
    let start = index
    var hasEscapes = false
    while let byte = peek(bytes), byte != quote {
      if byte == 0 { throw problem("has a value that contains a NUL") }
      if isDouble && "$`".utf8.contains(byte) {
        throw problem("has an unescaped $ or backquote in double quotes: write a backslash before it")
      }
      if isDouble && byte == UInt8(ascii: "\\") {
        index += 1
        hasEscapes = true
        guard let escape = peek(bytes), Self.escaped(escape) != nil else {
          throw problem("has an unknown escape in double quotes")
        }
      }
      advance(bytes[index])
    }
    if index == bytes.count { throw problem("has an unclosed \(isDouble ? "double" : "single") quote") }
    let raw = bytes.extracting(start..<index)
    index += 1
    if !hasEscapes { return SecretBytes(raw) }
    return SecretWriter.bytes { writer in
      var next = 0
      while next < raw.count {
        let isEscape = raw[next] == UInt8(ascii: "\\")
        if isEscape { next += 1 }
        writer.append(isEscape ? Self.escaped(raw[next]) ?? raw[next] : raw[next])
        next += 1
      }
    }
  }

  private static func escaped(_ byte: UInt8) -> UInt8? {
    zip("nrt\\\"$`".utf8, "\n\r\t\\\"$`".utf8).first { $0.0 == byte }?.1
  }

  private func peek(_ bytes: Span<UInt8>) -> UInt8? { index < bytes.count ? bytes[index] : nil }

  private static func isBlank(_ byte: UInt8?) -> Bool { byte == 0x20 || byte == 0x09 }

  /// Whether the position is at LF, at CRLF or at the end.
  private func atLineEnd(_ bytes: Span<UInt8>) -> Bool {
    guard let byte = peek(bytes) else { return true }
    if byte == UInt8(ascii: "\n") { return true }
    return byte == UInt8(ascii: "\r") && (index + 1 == bytes.count || bytes[index + 1] == UInt8(ascii: "\n"))
  }

  private mutating func advance(_ byte: UInt8) {
    if byte == UInt8(ascii: "\n") { line += 1 }
    index += 1
  }

  private mutating func skipBlanks(_ bytes: Span<UInt8>) {
    while Self.isBlank(peek(bytes)) { index += 1 }
  }

  private mutating func skipLine(_ bytes: Span<UInt8>) {
    while let byte = peek(bytes) {
      advance(byte)
      if byte == UInt8(ascii: "\n") { return }
    }
  }
}
