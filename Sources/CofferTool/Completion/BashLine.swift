internal import CofferCore

/// A command line of bash up to the cursor, split into words without their quotes, and the quoting in which bash
/// inserts a completed word.
///
/// bash replaces only the end of a word, after the last character of `COMP_WORDBREAKS` or an open quote. It inserts a
/// text as it is, so a name must be quoted for that place; otherwise the shell could run a part of it.
struct BashLine {
  enum Quote {
    case none, single, double, dollar

    fileprivate var mark: String { self == .none ? "" : self == .double ? "\"" : "'" }
  }

  /// The words before the current one. `nil`: the word has an expansion, so its text is not known.
  private(set) var words: [String?] = []
  /// The current word. `nil`: it has an expansion.
  private(set) var current: String?
  /// Whether the current word is the file of a redirection.
  private(set) var isRedirected = false
  /// The beginning of the current word, without quotes. bash keeps it, and replaces only the rest of the word.
  private(set) var kept = ""
  /// The quote that is open at the end of ``kept``.
  private(set) var quote = Quote.none

  private var bytes: [UInt8] = []
  private var text: String { String(decoding: bytes, as: UTF8.self) }
  private var isLiteral = true
  private var isInWord = false

  /// `end` is the part of `line` that bash replaces. Returns `nil` if bash would not insert at its beginning.
  init?(_ line: String, replacing end: String) {
    guard line.utf8.count >= end.utf8.count, line.utf8.suffix(end.utf8.count).elementsEqual(end.utf8) else {
      return nil
    }
    let line = Array(line.utf8)
    let start = line.count - end.utf8.count
    var index = 0
    var quoteStart = 0
    var open = Quote.none
    while index < line.count {
      if index == start { (kept, quote) = (text, open) }
      let byte = line[index]
      let next = index + 1 < line.count ? line[index + 1] : nil
      index += 1
      switch (open, Unicode.Scalar(byte)) {
      case (.none, " "), (.none, "\t"), (.none, "\n"): endWord()
      case (.none, "<"), (.none, ">"):
        // A number before it is the number of a descriptor.
        if bytes.allSatisfy(\.isASCIIDigit) { clearWord() } else { endWord() }
        isRedirected = true
      case (.none, "|"), (.none, "&"), (.none, ";"), (.none, "("), (.none, ")"):
        endWord()
        (words, isRedirected) = ([], false)
      case (.none, "'"), (.none, "\""):
        open = byte == UInt8(ascii: "'") ? .single : .double
        (isInWord, quoteStart) = (true, index)
      case (.none, "$") where next == UInt8(ascii: "'"):
        if index == start { (kept, quote) = (text, .none) }
        open = .dollar
        index += 1
        (isInWord, quoteStart) = (true, index)
      case (.single, "'"), (.double, "\""), (.dollar, "'"): open = .none
      case (.none, "$"), (.none, "`"), (.double, "$"), (.double, "`"): append(byte, isLiteral: false)
      case (.none, "\\"):
        isInWord = true
        guard let next else { break }
        if index == start { return nil }
        if next != UInt8(ascii: "\n") { bytes.append(next) }
        index += 1
      case (.double, "\\"):
        guard let next else { break }
        if index == start { return nil }
        let isEscape = "$`\"\\".utf8.contains(next)
        append(isEscape ? next : byte)
        if isEscape { index += 1 }
      case (.dollar, "\\"):
        guard next != nil else { break }
        let (value, length) = Self.escape(line[index...])
        append(value ?? 0, isLiteral: value != nil)
        if (index..<(index + length)).contains(start) { return nil }
        index += length
      default: append(byte)
      }
    }
    if start == line.count { (kept, quote) = (text, open) }
    // If a quote is open, bash replaces everything after the quote mark.
    if open != .none && quoteStart != start { return nil }
    current = isLiteral ? text : nil
  }

  private mutating func append(_ byte: UInt8, isLiteral: Bool = true) {
    bytes.append(byte)
    isInWord = true
    if !isLiteral { self.isLiteral = false }
  }

  private mutating func clearWord() {
    (bytes, isInWord, isLiteral) = ([], false, true)
  }

  private mutating func endWord() {
    guard isInWord else { return }
    if !isRedirected { words.append(isLiteral ? text : nil) }
    isRedirected = false
    clearWord()
  }

  /// The byte of an escape in `$'…'` after its backslash, and the escape's length. `nil` if the byte is not known here.
  private static func escape(_ text: ArraySlice<UInt8>) -> (UInt8?, Int) {
    let digits = text.prefix(3).prefix { (0x30...0x37).contains($0) }
    if digits.count == 3 { return (UInt8(truncatingIfNeeded: digits.reduce(0) { $0 << 3 | Int($1 - 0x30) }), 3) }
    guard digits.isEmpty, let first = text.first else { return (nil, max(1, digits.count)) }
    return ("'\"\\?".utf8.contains(first) ? first : nil, 1)
  }
}

extension BashLine {
  /// Returns the text for bash to insert after ``kept``, so that the current word becomes `name`. With `isWhole`, the
  /// word ends there, and an open quote is closed.
  func inserted(_ name: String, isWhole: Bool) -> String {
    let rest = String(decoding: name.utf8.dropFirst(kept.utf8.count), as: UTF8.self)
    var text = rest.unicodeScalars.map { Self.quoted($0, in: quote) }.joined()
    if quote == .none { return text }
    let mark = quote.mark
    // bash closes an open quote unless the text ends in that quote, which may belong to the name.
    if isWhole { text += mark }
    // bash removes the typed quote if the text begins with another.
    return text.hasPrefix(mark) ? mark + text : text
  }

  private static func quoted(_ scalar: Unicode.Scalar, in quote: Quote) -> String {
    let octal = String(scalar).utf8.map { byte in
      "\\" + String(byte >> 6) + String(byte >> 3 & 7) + String(byte & 7)
    }.joined()
    let isHidden = scalar.isUnsafeOnTerminal || (scalar.properties.generalCategory == .spaceSeparator && scalar != " ")
    if isHidden && quote != .dollar { return "\(quote.mark)$'\(octal)'\(quote.mark)" }
    switch quote {
    case .none:
      let isPlain =
        !scalar.isASCII || UInt8(ascii: scalar).isASCIILetterOrDigit
        || "_./-+@%:=,".unicodeScalars.contains(scalar)
      return isPlain ? String(scalar) : "\\" + String(scalar)
    case .single: return scalar == "'" ? "'\\''" : String(scalar)
    case .double:
      // Between double quotes, a backslash before an exclamation mark would remain.
      if scalar == "!" { return "\"\\!\"" }
      return "$`\"\\".unicodeScalars.contains(scalar) ? "\\" + String(scalar) : String(scalar)
    case .dollar:
      return isHidden || "\\'!".unicodeScalars.contains(scalar) ? octal : String(scalar)
    }
  }
}
