internal import Coffer
internal import CofferConfiguration

/// Files of `NAME=value` lines, which set the environment of programs and containers: the subset that all readers of
/// such files interpret in the same way.
///
/// - A line is `NAME=value`, `NAME = value` or `export NAME=value`, or blank. A byte order mark may precede the first.
///   A comment begins with a `#` at the beginning of a line or after a blank.
/// - An unquoted value contains no blanks, quotes, `$`, backslashes or backquotes.
/// - A value in single quotes is verbatim, and may contain line ends.
/// - A value in double quotes may contain line ends, and the escapes `\n`, `\r`, `\t`, `\\`, `\"`, `\$` and `` \`
///   ``. It contains no other backslash, `$` or backquote, which some readers would expand.
/// - Names are distinct. Lines end with LF or CRLF.
enum Dotenv {
  struct Entry {
    let name: String
    let value: SecretBytes
    /// The line where the entry begins, from 1 on.
    let line: Int
  }

  /// The entries of `text` in order. Throws a failure that names the invalid lines.
  static func entries(in text: SecretBytes, of file: String) throws(Failure) -> [Entry] {
    let (entries, problems) = text.withBytes { DotenvParser.parse($0) }
    if problems.isEmpty { return entries }
    let most = 5
    var sentences = problems.prefix(most).map { "Line \($0.line) \($0.text)." }.joined(separator: " ")
    if problems.count > most { sentences += " Invalid lines not listed: \(problems.count - most)." }
    throw Failure(.damaged, "\(file) cannot be read. \(sentences)")
  }

  /// What the value contains that python-dotenv, node, docker compose and bash read differently in quotes, or `nil`.
  ///
  /// In single quotes, python-dotenv takes `\\` for one backslash and expands `${…}`, and compose ends a value only at
  /// a quote without a backslash before it. In double quotes, each of them has different escapes.
  static func obstacle(to bytes: Span<UInt8>) -> String? {
    func has(_ text: String, _ next: String = "") -> Bool {
      let (first, next) = (Array(text.utf8), Array(next.utf8))
      return bytes.indices.contains { index in
        first.contains(bytes[index]) && (next.isEmpty || index + 1 < bytes.count && next.contains(bytes[index + 1]))
      }
    }
    if has("\0") { return "a NUL" }
    if !bytes.isUTF8 { return "bytes that are not UTF-8" }
    if has("\r") { return "a carriage return" }
    if has("$", "{") { return "${" }
    if has("\\", "\\") { return "two backslashes in a row" }
    if bytes.count > 0, bytes[bytes.count - 1] == UInt8(ascii: "\\") { return "a backslash at its end" }
    return has("'") && has("$\\\"`") ? "a single quote together with a $, a backslash, a \" or a backquote" : nil
  }

  /// `value` in quotes that it does not contain, for use after the equals sign. It must have no ``obstacle(to:)``.
  static func quoted(_ value: SecretBytes) -> SecretBytes {
    value.withBytes { bytes in
      let quote = bytes.contains(UInt8(ascii: "'")) ? "\"" : "'"
      return TemplateFilter.escaped(bytes, in: quote) { _ in nil }
    }
  }
}
