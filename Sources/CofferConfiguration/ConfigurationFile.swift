internal import CofferCore
internal import CofferSystem

/// What `secret init` records: a line `backend = vault`, and a line `key-file.ID = /path` for each vault.
///
/// The parse is strict, because a line that is not understood may be the one that matters. Blank lines and
/// lines that begin with `#` are a person's, and are kept.
struct ConfigurationFile {
  private(set) var backend: CofferConfiguration.Kind?
  private(set) var keyFiles: [String: String] = [:]
  private var lines: [Substring] = []

  /// Reads the file at `path`. One that is not there says nothing.
  init(path: String) throws(SecretError) {
    try self.init(
      parsing: PrivateFile.text(of: path, as: "The configuration file \(path)", limit: 65_536) ?? "",
      path: path)
  }

  init(parsing text: String, path: String) throws(SecretError) {
    // By scalars: to Swift, CR and LF in a row are one character, and no newline.
    lines = text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false).map { Substring($0) }
    if lines.last?.isEmpty ?? false { lines.removeLast() }
    var seen: Set<String> = []
    for (index, line) in lines.enumerated() {
      func fail(_ what: String, _ advice: String = "Correct the line, or remove it.") -> SecretError {
        SecretError(.configuration, "Line \(index + 1) of \(path) \(what).", advice: advice)
      }
      guard let (name, value) = Self.nameAndValue(line) else {
        if Self.isComment(line) { continue }
        throw fail("is not of the form “name = value”")
      }
      if !seen.insert(name).inserted {
        throw fail("says again what an earlier line says", "Remove one of them.")
      }
      if name == "backend" {
        guard let kind = CofferConfiguration.Kind(rawValue: value) else {
          throw fail("names a backend that is neither keyring nor vault")
        }
        backend = kind
      } else if let id = Self.vaultIdentifier(in: name) {
        guard Self.isRecordable(path: value) else { throw fail("does not give an absolute path") }
        keyFiles[id] = value
      } else if name.hasPrefix("key-file.") {
        throw fail("names a key file of a vault whose id is not 32 lower-case hexadecimal digits")
      } else {
        throw fail("has a name that is not known: it is neither backend nor key-file.ID")
      }
    }
  }

  /// The file's text, with one LF at the end of each line.
  var text: String { lines.map { $0 + "\n" }.joined() }

  /// Puts `name = value` in place of the line for `name`, or at the end.
  mutating func set(_ name: String, _ value: String) {
    let line = Substring("\(name) = \(value)")
    if let index = lines.firstIndex(where: { Self.nameAndValue($0)?.0 == name }) {
      lines[index] = line
    } else {
      lines.append(line)
    }
  }

  static func isVaultIdentifier(_ id: String) -> Bool {
    id.utf8.count == 32 && id.utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
  }

  /// Whether the path can be on a line of its own and comes back the same.
  static func isRecordable(path: String) -> Bool {
    path.hasPrefix("/") && !path.utf8.contains { $0 == 0 || $0 == 10 || $0 == 13 }
      && trimmed(Substring(path)).utf8.elementsEqual(path.utf8)
  }

  private static func vaultIdentifier(in name: String) -> String? {
    guard name.hasPrefix("key-file.") else { return nil }
    let id = String(name.dropFirst("key-file.".count))
    return isVaultIdentifier(id) ? id : nil
  }

  private static func isComment(_ line: Substring) -> Bool {
    let content = trimmed(line)
    return content.isEmpty || content.utf8.first == UInt8(ascii: "#")
  }

  private static func nameAndValue(_ line: Substring) -> (String, String)? {
    guard !isComment(line), let equals = line.firstIndex(of: "=") else { return nil }
    let name = String(trimmed(line[..<equals]))
    let value = String(trimmed(line[line.index(after: equals)...]))
    return name.isEmpty || value.isEmpty ? nil : (name, value)
  }

  /// Without the spaces and tabs at both ends.
  private static func trimmed(_ text: Substring) -> Substring {
    var text = text
    while let first = text.unicodeScalars.first, first == " " || first == "\t" {
      text.unicodeScalars.removeFirst()
    }
    while let last = text.unicodeScalars.last, last == " " || last == "\t" {
      text.unicodeScalars.removeLast()
    }
    return text
  }
}
