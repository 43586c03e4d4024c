internal import CofferCore

/// A table of the subset of TOML 1.0 that the configuration file and a project's file use, with the lines of its
/// entries.
///
/// A value is a string on one line, a boolean, or an inline table of these. Names of tables and entries have no quotes,
/// and only names of tables contain dots. Every reader of TOML understands an accepted text in the same way.
///
/// Source: https://toml.io/en/v1.0.0
package final class TOMLTable {
  package enum Value {
    case string(String)
    case boolean(Bool)
    case table(TOMLTable)
  }

  package struct Entry {
    package let name: String
    package let line: Int
    package let value: Value
  }

  package fileprivate(set) var entries: [Entry] = []
  /// Whether a line `[NAME]` has made the table. A second such line is an error.
  fileprivate var isComplete = false
  package let isInline: Bool

  fileprivate init(isInline: Bool = false) { self.isInline = isInline }
}

/// What is wrong with a line of a file.
package struct LineProblem: Error, Hashable {
  package let line: Int
  /// Completes the sentence "Line 3 …". Never contains a part of a value.
  package let text: String

  package init(line: Int, text: String) { (self.line, self.text) = (line, text) }
}

extension TOMLTable.Entry {
  package func problem(_ text: String) -> LineProblem { LineProblem(line: line, text: text) }

  package func text(maximum: Int = 1024) throws(LineProblem) -> String {
    if case .string(let text) = value, 1...maximum ~= text.utf8.count, !text.utf8.contains(0) { return text }
    throw problem("has no valid text for “\(name)”: expected 1 to \(maximum) bytes in quotes, without a NUL")
  }

  package func table() throws(LineProblem) -> [TOMLTable.Entry] {
    if case .table(let table) = value { return table.entries }
    throw problem("has a value for “\(name)”: expected a line [\(name)] and lines below it")
  }
}

/// Reads the text of a ``TOMLTable``.
package struct TOMLReader {
  private let bytes: [UInt8]
  private var index = 0
  private var line = 1

  package init(bytes: [UInt8]) { self.bytes = bytes }

  private var next: UInt8? { index < bytes.count ? bytes[index] : nil }

  private func problem(_ text: String) -> LineProblem { LineProblem(line: line, text: text) }

  private mutating func skip(_ text: String) -> Bool {
    guard bytes[index...].starts(with: text.utf8) else { return false }
    index += text.utf8.count
    return true
  }

  private mutating func skipBlanks() {
    while next == UInt8(ascii: " ") || next == UInt8(ascii: "\t") { index += 1 }
  }

  package mutating func read() throws(LineProblem) -> TOMLTable {
    if String(validating: bytes, as: UTF8.self) == nil { throw problem("or a later one is not UTF-8 text") }
    let root = TOMLTable()
    var table = root
    while next != nil {
      skipBlanks()
      if skip("[") {
        table = try readHeader(below: root)
      } else if let next, !"#\r\n".utf8.contains(next) {
        try readEntry(of: table)
      }
      try endLine()
    }
    return root
  }

  /// Reads a comment, if there is one, and the end of the line.
  private mutating func endLine() throws(LineProblem) {
    skipBlanks()
    if skip("#") { while let next, Self.isText(next) { index += 1 } }
    guard next == nil || skip("\n") || skip("\r\n") else {
      throw problem("has an unexpected character: expected a comment or the end of the line")
    }
    line += 1
  }

  /// Whether a string or a comment on one line may contain the byte.
  private static func isText(_ byte: UInt8) -> Bool {
    byte >= 0x20 && byte != 0x7F || byte == UInt8(ascii: "\t")
  }

  private mutating func readName() throws(LineProblem) -> String {
    skipBlanks()
    let start = index
    while let next, next.isASCIILetterOrDigit || next == UInt8(ascii: "_") || next == UInt8(ascii: "-") {
      index += 1
    }
    if start == index { throw problem("has no name: expected letters, digits, _ and - without quotes") }
    defer { skipBlanks() }
    return String(decoding: bytes[start..<index], as: UTF8.self)
  }

  /// Reads the rest of a line `[NAME.NAME]`, and returns the table that it makes.
  private mutating func readHeader(below root: TOMLTable) throws(LineProblem) -> TOMLTable {
    var table = root
    repeat {
      let name = try readName()
      switch table.entries.first(where: { $0.name == name })?.value {
      case .table(let inner) where !inner.isInline: table = inner
      case nil:
        let inner = TOMLTable()
        table.entries.append(TOMLTable.Entry(name: name, line: line, value: .table(inner)))
        table = inner
      default: throw problem("makes a table of “\(name)”, which has a value")
      }
    } while skip(".")
    if !skip("]") { throw problem("has no ] after the name of the table") }
    if table.isComplete { throw problem("repeats a table") }
    table.isComplete = true
    return table
  }

  private mutating func readEntry(of table: TOMLTable) throws(LineProblem) {
    let name = try readName()
    if table.entries.contains(where: { $0.name == name }) { throw problem("repeats the name “\(name)”") }
    if !skip("=") { throw problem("has no = after the name “\(name)”") }
    skipBlanks()
    let value: TOMLTable.Value
    if let quote = next, "\"'".utf8.contains(quote) {
      index += 1
      value = .string(try readString(until: quote))
    } else if skip("true") {
      value = .boolean(true)
    } else if skip("false") {
      value = .boolean(false)
    } else if !table.isInline, skip("{") {
      value = .table(try readInlineTable())
    } else {
      let forms = table.isInline ? "a text in quotes, true or false" : "a text in quotes, true, false or { … }"
      throw problem("has an invalid value of “\(name)”: expected \(forms)")
    }
    table.entries.append(TOMLTable.Entry(name: name, line: line, value: value))
  }

  private mutating func readInlineTable() throws(LineProblem) -> TOMLTable {
    let table = TOMLTable(isInline: true)
    skipBlanks()
    if skip("}") { return table }
    repeat {
      try readEntry(of: table)
      skipBlanks()
    } while skip(",")
    if !skip("}") { throw problem("has no } on the same line") }
    return table
  }

  /// Reads the rest of a string on one line. Only a string in double quotes has escapes.
  private mutating func readString(until quote: UInt8) throws(LineProblem) -> String {
    var text: [UInt8] = []
    while let byte = next, byte != quote {
      guard Self.isText(byte) else { break }
      index += 1
      if byte == UInt8(ascii: "\\"), quote == UInt8(ascii: "\"") {
        text += try readEscape().utf8
      } else {
        text.append(byte)
      }
    }
    if next != quote { throw problem("has a text without a closing quote on the same line") }
    index += 1
    // Three quotes begin a string of several lines.
    if text.isEmpty, next == quote { throw problem("has a text of several lines: expected one line") }
    return String(decoding: text, as: UTF8.self)
  }

  private static let escapes: [UInt8: String] = [
    UInt8(ascii: "b"): "\u{8}", UInt8(ascii: "t"): "\t", UInt8(ascii: "n"): "\n", UInt8(ascii: "f"): "\u{C}",
    UInt8(ascii: "r"): "\r", UInt8(ascii: "\""): "\"", UInt8(ascii: "\\"): "\\",
  ]

  private mutating func readEscape() throws(LineProblem) -> String {
    defer { index += 1 }
    if let next, let text = Self.escapes[next] { return text }
    let length = next == UInt8(ascii: "u") ? 4 : next == UInt8(ascii: "U") ? 8 : 0
    let digits = bytes[min(index + 1, bytes.count)...].prefix(length)
    guard length > 0, digits.count == length, digits.allSatisfy({ $0.isASCIILetterOrDigit }),
      let number = UInt32(String(decoding: digits, as: UTF8.self), radix: 16),
      let scalar = Unicode.Scalar(number)
    else { throw problem("has an unknown escape after a backslash") }
    index += length
    return String(scalar)
  }
}
