internal import Coffer

/// A text in which each reference stands for a secret's value.
///
/// In `{{ secret://SERVICE/ACCOUNT }}` the reference ends before the braces. A bare `secret://…` ends before
/// the first byte other than letters, digits, `-._~%` and one slash: the bytes that a URI does not escape.
/// All other bytes are kept unchanged.
struct Template: ~Copyable {
  private enum Part {
    case text(Range<Int>)
    case value(SecretIdentifier)
  }

  private let source: SecretBytes
  private let parts: [Part]

  /// Throws if the text contains an invalid reference.
  init(_ source: consuming SecretBytes) throws {
    parts = try source.withBytes { try Self.parse($0) }
    self.source = source
  }

  /// The secrets that the template refers to, in order and without duplicates.
  var identifiers: [SecretIdentifier] {
    var seen: Set<SecretIdentifier> = []
    return parts.compactMap { part in
      if case .value(let identifier) = part, seen.insert(identifier).inserted { identifier } else { nil }
    }
  }

  /// The largest size in bytes of a filled template (64 MiB). A template repeats a value as often as it wants,
  /// so without a limit a small file could use all memory.
  static let maximumSize = 64 << 20

  /// Returns the text with each reference replaced by its value, verbatim. Reads each secret once. Throws if a
  /// secret does not exist, and, before building the text, if it would be larger than ``maximumSize``.
  borrowing func filled(from backend: any SecretBackend) throws -> SecretBytes {
    var count = 0
    var occurrences: [SecretIdentifier: Int] = [:]
    for part in parts {
      switch part {
      case .text(let range): count += range.count
      case .value(let identifier): occurrences[identifier, default: 0] += 1
      }
    }
    var values: [SecretIdentifier: SharedSecret] = [:]
    for identifier in identifiers {
      guard let value = try backend.lookUp(identifier) else {
        let failure = MissingSecret.failure(identifier, in: backend)
        throw Failure(failure.status, failure.message + " Nothing was written.")
      }
      let (added, overflows) = value.count.multipliedReportingOverflow(by: occurrences[identifier] ?? 0)
      guard !overflows, count <= Self.maximumSize, added <= Self.maximumSize - count else {
        throw Failure.usage(
          """
          The result would be larger than \(Self.maximumSize) bytes, and nothing was written. Use a template with fewer \
          references to large secrets.
          """)
      }
      count += added
      values[identifier] = SharedSecret(value)
    }
    return SecretWriter.bytes(capacity: count) { writer in
      for part in parts {
        switch part {
        case .text(let range): source.withBytes { writer.append($0.extracting(range)) }
        case .value(let identifier): values[identifier]?.bytes.withBytes { writer.append($0) }
        }
      }
    }
  }

  private static func parse(_ bytes: Span<UInt8>) throws -> [Part] {
    let scheme = Array(SecretReference.scheme.utf8)
    func begins(_ text: [UInt8], at index: Int) -> Bool {
      index + text.count <= bytes.count && text.indices.allSatisfy { bytes[index + $0] == text[$0] }
    }
    var parts: [Part] = []
    var textStart = 0
    var index = 0
    func add(_ reference: Range<Int>, whole: Range<Int>) throws {
      let text = String(decoding: reference.map { bytes[$0] }, as: UTF8.self)
      guard let found = try SecretReference(text) else { return }
      if textStart < whole.lowerBound { parts.append(.text(textStart..<whole.lowerBound)) }
      parts.append(.value(found.identifier))
      textStart = whole.upperBound
    }
    while index < bytes.count {
      if bytes[index] == UInt8(ascii: "{"), begins(Array("{{".utf8), at: index) {
        var start = index + 2
        while start < bytes.count, isBlank(bytes[start]) { start += 1 }
        if begins(scheme, at: start) {
          var end = start
          while end < bytes.count, bytes[end] != UInt8(ascii: "\n"), !begins(Array("}}".utf8), at: end) {
            end += 1
          }
          guard begins(Array("}}".utf8), at: end) else {
            throw Failure.usage("A reference in double braces does not end on its line. Close it with }}.")
          }
          let close = end + 2
          while end > start, isBlank(bytes[end - 1]) { end -= 1 }
          try add(start..<end, whole: index..<close)
          index = close
          continue
        }
      }
      if bytes[index] == scheme[0], begins(scheme, at: index) {
        var end = index + scheme.count
        var slashes = 0
        while end < bytes.count {
          if bytes[end] == UInt8(ascii: "/") {
            slashes += 1
            if slashes > 1 { break }
          } else if !isUnreserved(bytes[end]) {
            break
          }
          end += 1
        }
        try add(index..<end, whole: index..<end)
        index = end
        continue
      }
      index += 1
    }
    if textStart < bytes.count { parts.append(.text(textStart..<bytes.count)) }
    return parts
  }

  private static func isBlank(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
  }

  private static func isUnreserved(_ byte: UInt8) -> Bool {
    byte.isASCIILetterOrDigit || "-._~%".utf8.contains(byte)
  }
}
