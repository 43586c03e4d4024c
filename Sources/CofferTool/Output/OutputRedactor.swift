internal import Coffer
internal import FoundationEssentials

/// What a command prints on its way to the reader, with the values that it was given masked.
///
/// What may be the beginning of a value is held until more comes or the output ends, so that no boundary
/// between two reads lets one through. Not thread-safe.
struct OutputRedactor {
  /// The fewest bytes of a value that is masked: shorter ones are parts of ordinary words and numbers.
  static let minimumLength = 4

  /// What is looked for, in guarded memory, and what takes its place.
  final class Pattern: Sendable {
    let bytes: SecretBytes
    let mask: [UInt8]

    init(_ bytes: consuming SecretBytes, mask: [UInt8]) {
      self.bytes = bytes
      self.mask = mask
    }
  }

  private let patterns: [Pattern]
  /// Which bytes a pattern begins with.
  private let begins: [Bool]
  private var held: [UInt8] = []

  /// The longest of two patterns that both fit is masked.
  init(_ patterns: [Pattern]) {
    self.patterns = patterns.sorted { $0.bytes.count > $1.bytes.count }
    var begins = [Bool](repeating: false, count: 256)
    for pattern in patterns { pattern.bytes.withBytes { begins[Int($0[0])] = true } }
    self.begins = begins
  }

  /// What of `new`, and of what was held, can be shown.
  mutating func pass(_ new: ArraySlice<UInt8>) -> [UInt8] {
    held += new
    return take(isEnd: false)
  }

  /// What was held: no more comes.
  mutating func finish() -> [UInt8] { take(isEnd: true) }

  private enum Match {
    case none, whole(Pattern), perhaps
  }

  private mutating func take(isEnd: Bool) -> [UInt8] {
    var shown: [UInt8] = []
    shown.reserveCapacity(held.count)
    var index = 0
    scan: while index < held.count {
      guard begins[Int(held[index])] else {
        shown.append(held[index])
        index += 1
        continue
      }
      switch match(at: index, isEnd: isEnd) {
      case .none:
        shown.append(held[index])
        index += 1
      case .whole(let pattern):
        shown += pattern.mask
        index += pattern.bytes.count
      case .perhaps: break scan
      }
    }
    held.removeFirst(index)
    return shown
  }

  private func match(at index: Int, isEnd: Bool) -> Match {
    let rest = held[index...]
    for pattern in patterns {
      let length = min(rest.count, pattern.bytes.count)
      let agrees = pattern.bytes.withBytes { bytes in
        (0..<length).allSatisfy { bytes[$0] == rest[index + $0] }
      }
      if !agrees { continue }
      if length == pattern.bytes.count { return .whole(pattern) }
      if !isEnd { return .perhaps }
    }
    return .none
  }

  /// What to look for, so that `value` is not seen: the value, also without the line feeds at its end, which a
  /// shell drops; and its base64. Nothing where it is too short.
  static func patterns(for value: borrowing SecretBytes, named name: String) -> [Pattern] {
    let trimmed = value.withBytes { bytes in
      var count = bytes.count
      while count > 0, bytes[count - 1] == UInt8(ascii: "\n") { count -= 1 }
      return SecretBytes(copying: bytes.extracting(0..<count))
    }
    guard trimmed.count >= minimumLength else { return [] }
    var forms = Forms(mask: Array("[\(name)]".utf8))
    forms.add(base64(of: trimmed, then: [], padded: true))
    forms.add(base64(of: trimmed, then: [UInt8(ascii: "\n")], padded: true))
    // Something else may follow the value in what was encoded: whole groups of three stay the same.
    forms.add(base64(of: trimmed, then: [], padded: false))
    forms.add(trimmed.copy())
    return forms.patterns
  }

  /// Forms of one value that are long enough to be looked for.
  private struct Forms {
    let mask: [UInt8]
    private(set) var patterns: [Pattern] = []
    mutating func add(_ form: consuming SecretBytes) {
      if form.count >= minimumLength { patterns.append(Pattern(form, mask: mask)) }
    }
  }

  private static func base64(
    of value: borrowing SecretBytes,
    then end: [UInt8],
    padded: Bool
  ) -> SecretBytes {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    let count = value.count + end.count
    let groups = padded ? (count + 2) / 3 : count / 3
    return SecretBytes(count: groups * 4) { text in
      value.withBytes { bytes in
        func byte(_ index: Int) -> Int {
          index < bytes.count ? Int(bytes[index]) : index < count ? Int(end[index - bytes.count]) : 0
        }
        for group in 0..<groups {
          let start = group * 3
          let bits = byte(start) << 16 | byte(start + 1) << 8 | byte(start + 2)
          for digit in 0..<4 {
            let isPadding = start + digit > count
            text[group * 4 + digit] =
              isPadding ? UInt8(ascii: "=") : alphabet[bits >> (18 - 6 * digit) & 63]
          }
        }
      }
    }
  }
}
