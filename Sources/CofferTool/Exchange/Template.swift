internal import Coffer

/// A text in which each reference stands for a secret's value.
///
/// In `{{ secret://SERVICE/ACCOUNT }}` the reference ends before the braces, or before the first ` | ` with the names
/// of filters. A bare `secret://…` ends before the first byte other than letters, digits, `-._~%` and one slash: the
/// bytes that a URI does not escape. All other bytes are kept unchanged.
struct Template: ~Copyable {
  private enum Part {
    case text(Range<Int>)
    case value(Insertion)
  }
  /// A reference with its filters.
  private struct Insertion: Hashable {
    let identifier: SecretIdentifier
    /// In the order in which they are applied.
    let filters: [TemplateFilter]

    /// Parses a reference, and after it the names of filters, each after a vertical bar between blanks. `nil` if `text`
    /// is not a reference.
    init?(_ text: String) throws {
      let parts = text.split(separator: " | ", omittingEmptySubsequences: false).map { part in
        let part = part.drop { $0 == " " || $0 == "\t" }
        return part.lastIndex { $0 != " " && $0 != "\t" }.map { String(part[...$0]) } ?? ""
      }
      guard let identifier = try SecretReference.identifier(parts[0]) else { return nil }
      self.identifier = identifier
      filters = try parts.dropFirst().map { name in
        if let filter = TemplateFilter(rawValue: name) { return filter }
        let all = TemplateFilter.allCases.map(\.rawValue).joined(separator: ", ")
        throw Failure.usage("“\(name)” is not a filter. Use one of \(all); in a name, write a vertical bar as %7C.")
      }
    }

    func text(of value: SecretBytes) throws(Failure) -> SecretBytes {
      var text = value
      for filter in filters {
        guard let filtered = filter.applied(to: text) else {
          throw Failure(
            .damaged,
            "The secret “\(identifier.account)” cannot be written with the filter \(filter): \(filter.obstacle). Nothing was written."
          )
        }
        text = filtered
      }
      return text
    }
  }

  private let source: SecretBytes
  private let parts: [Part]

  init(_ source: SecretBytes) throws {
    parts = try source.withBytes { try Self.parse($0) }
    self.source = source
  }

  var identifiers: Set<SecretIdentifier> {
    Set(parts.compactMap { if case .value(let insertion) = $0 { insertion.identifier } else { nil } })
  }

  /// The largest size in bytes of a filled template (64 MiB). A template may repeat a value any number of times, so
  /// without a limit a small file could use all memory.
  static let maximumSize = 64 << 20

  /// Returns the text with each reference replaced by its value, as its filters write it. Reads each secret once.
  /// Throws if a secret does not exist, if a filter cannot write its value, and, before it builds the text, if that
  /// would be larger than ``maximumSize``.
  borrowing func filled(from backend: any SecretBackend) throws -> SecretBytes {
    var count = 0
    var values: [SecretIdentifier: SecretBytes] = [:]
    var texts: [Insertion: SecretBytes] = [:]
    for part in parts {
      switch part {
      case .text(let range): count += range.count
      case .value(let insertion):
        let identifier = insertion.identifier
        guard let value = try values[identifier] ?? backend.lookUp(identifier) else {
          throw MissingSecret.failure(identifier, in: backend)
        }
        values[identifier] = value
        let text = try texts[insertion] ?? insertion.text(of: value)
        texts[insertion] = text
        count += text.count
      }
      if count > Self.maximumSize {
        throw Failure.usage(
          """
          The result would be larger than \(Self.maximumSize) bytes, and nothing was written. Use a template with fewer \
          references to large secrets.
          """)
      }
    }
    return SecretWriter.bytes { writer in
      for part in parts {
        switch part {
        case .text(let range): source.withBytes { writer.append($0.extracting(range)) }
        case .value(let insertion): texts[insertion]?.withBytes { writer.append($0) }
        }
      }
    }
  }

  private static func parse(_ bytes: Span<UInt8>) throws -> [Part] {
    func begins(_ text: String, at index: Int) -> Bool { bytes.extracting(index...).starts(with: text) }
    var parts: [Part] = []
    var (textStart, index) = (0, 0)
    while index < bytes.count {
      let isInBraces = begins("{{", at: index)
      var start = isInBraces ? index + 2 : index
      while isInBraces, start < bytes.count, " \t".utf8.contains(bytes[start]) { start += 1 }
      guard begins(SecretReference.scheme, at: start) else {
        index += 1
        continue
      }
      var end = start + SecretReference.scheme.utf8.count
      if isInBraces {
        while end < bytes.count, bytes[end] != UInt8(ascii: "\n"), !begins("}}", at: end) { end += 1 }
        guard begins("}}", at: end) else {
          throw Failure.usage("A reference in double braces does not end on its line. Close it with }}.")
        }
      } else {
        while end < bytes.count, bytes[end].isUnreservedInURI || "/%".utf8.contains(bytes[end]) { end += 1 }
      }
      if textStart < index { parts.append(.text(textStart..<index)) }
      index = isInBraces ? end + 2 : end
      textStart = index
      while isInBraces, " \t".utf8.contains(bytes[end - 1]) { end -= 1 }
      let text = String(decoding: (start..<end).map { bytes[$0] }, as: UTF8.self)
      if let insertion = try Insertion(text) { parts.append(.value(insertion)) }
    }
    if textStart < bytes.count { parts.append(.text(textStart..<bytes.count)) }
    return parts
  }
}
