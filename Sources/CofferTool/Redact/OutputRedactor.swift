internal import Coffer
internal import CofferCore
internal import CofferSystem

/// Replaces a command's values in its output by the names of their variables.
///
/// Holds back a possible beginning of a value until more output arrives or the output ends, so that a value
/// that is split between two reads is redacted too. ``showBeginning()`` shows a part of it earlier. Not
/// thread-safe.
struct OutputRedactor {
  /// The least size in bytes of a value that is redacted. Shorter values occur in ordinary words and numbers.
  static let minimumLength = 4

  /// The bytes to redact, in guarded memory, and their replacement.
  final class Pattern: Sendable {
    let bytes: SecretBytes
    let replacement: [UInt8]

    init(_ bytes: consuming SecretBytes, replacement: [UInt8]) {
      self.bytes = bytes
      self.replacement = replacement
    }
  }

  /// The longest first, because the longest of several matches is redacted.
  private let patterns: [Pattern]
  /// Whether a pattern begins with the byte.
  private let isFirstByte: [Bool]
  private var held: [UInt8] = []
  /// The number of bytes at the beginning of `held` that ``showBeginning()`` returned.
  private var shownEarly = 0

  init(_ patterns: [Pattern]) {
    self.patterns = patterns.sorted { $0.bytes.count > $1.bytes.count }
    var isFirstByte = [Bool](repeating: false, count: 256)
    for pattern in patterns { pattern.bytes.withBytes { isFirstByte[Int($0[0])] = true } }
    self.isFirstByte = isFirstByte
  }

  /// Returns the output that can be shown after `new` has arrived.
  mutating func redact(_ new: ArraySlice<UInt8>) -> [UInt8] {
    held += new
    return take(isEnd: false)
  }

  /// Returns the rest of the output at its end.
  mutating func finish() -> [UInt8] { take(isEnd: true) }

  /// The most bytes of a value that ``showBeginning()`` shows: half of the value, and not more than these.
  static let longestBeginning = 8

  /// Returns what can be shown of a possible beginning of a value, because the output pauses there and somebody
  /// may wait for it. If the rest of the value follows, it is redacted: a value that is written slowly is shown
  /// up to its half, or up to ``longestBeginning`` bytes.
  mutating func showBeginning() -> [UInt8] {
    var end = held.count
    for index in 0..<min(held.count, Self.longestBeginning) {
      for pattern in patterns where agrees(pattern, at: index) {
        end = min(end, index + min(pattern.bytes.count / 2, Self.longestBeginning))
      }
    }
    guard end > shownEarly else { return [] }
    defer { shownEarly = end }
    return Array(held[shownEarly..<end])
  }

  /// Whether output is held back.
  var isHolding: Bool { held.count > shownEarly }

  private enum Match {
    case none, whole(Pattern), possible
  }

  private mutating func take(isEnd: Bool) -> [UInt8] {
    var shown: [UInt8] = []
    shown.reserveCapacity(held.count)
    var index = 0
    func showByte() {
      if index >= shownEarly { shown.append(held[index]) }
      index += 1
    }
    scan: while index < held.count {
      guard isFirstByte[Int(held[index])] else {
        showByte()
        continue
      }
      switch match(at: index, isEnd: isEnd) {
      case .none: showByte()
      case .whole(let pattern):
        shown += pattern.replacement
        index += pattern.bytes.count
      case .possible: break scan
      }
    }
    held.removeFirst(index)
    shownEarly = max(0, shownEarly - index)
    return shown
  }

  private func match(at index: Int, isEnd: Bool) -> Match {
    for pattern in patterns where agrees(pattern, at: index) {
      if held.count - index >= pattern.bytes.count { return .whole(pattern) }
      if !isEnd { return .possible }
    }
    return .none
  }

  /// Whether the output from `index` on is the value or its beginning.
  private func agrees(_ pattern: Pattern, at index: Int) -> Bool {
    pattern.bytes.withBytes { bytes in
      (0..<min(held.count - index, bytes.count)).allSatisfy { bytes[$0] == held[index + $0] }
    }
  }

  /// Whether the value is long enough to be redacted.
  static func canRedact(_ value: borrowing SecretBytes) -> Bool {
    lengthWithoutLineFeeds(value) >= minimumLength
  }

  private static func lengthWithoutLineFeeds(_ value: borrowing SecretBytes) -> Int {
    value.withBytes { bytes in
      var count = bytes.count
      while count > 0, bytes[count - 1] == UInt8(ascii: "\n") { count -= 1 }
      return count
    }
  }

  /// The patterns of `value`, which is in the variable `name`: the value without final line feeds, which a
  /// shell drops, as a terminal shows it, and its base64. Empty if the value is shorter than
  /// ``minimumLength``.
  static func patterns(for value: borrowing SecretBytes, named name: String) -> [Pattern] {
    let length = lengthWithoutLineFeeds(value)
    guard length >= minimumLength else { return [] }
    let line = SecretWriter.bytes(capacity: length + 1) { writer in
      value.withBytes { writer.append($0.extracting(first: length)) }
      writer.append("\n")
    }
    let replacement = Array("[\(name)]".utf8)
    let onTerminal = withCarriageReturns(value.prefix(length))
    let isChanged = onTerminal.count > length
    return (isChanged ? [Pattern(onTerminal, replacement: replacement)] : []) + [
      Pattern(value.prefix(length), replacement: replacement),
      Pattern(value.prefix(length).base64(), replacement: replacement),
      Pattern(line.base64(), replacement: replacement),
      // The base64 of a longer text that begins with the value: complete groups of three bytes do not change.
      Pattern(value.prefix(length - length % 3).base64(), replacement: replacement),
    ]
  }

  /// As a terminal shows the value: with a carriage return before each line feed.
  private static func withCarriageReturns(_ value: borrowing SecretBytes) -> SecretBytes {
    SecretWriter.bytes(capacity: value.count * 2) { writer in
      value.withBytes { bytes in
        for index in bytes.indices {
          if bytes[index] == UInt8(ascii: "\n") { writer.append("\r") }
          writer.append(bytes[index])
        }
      }
    }
  }
}
