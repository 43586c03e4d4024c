internal import Coffer
internal import CofferCore
internal import CofferSystem

/// Replaces a command's values in its output by the names of their variables.
///
/// Holds back a possible beginning of a value until more output arrives or the output ends, so that a value
/// that is split between two reads is redacted too. Not thread-safe.
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

  private enum Match {
    case none, whole(Pattern), possible
  }

  private mutating func take(isEnd: Bool) -> [UInt8] {
    var shown: [UInt8] = []
    shown.reserveCapacity(held.count)
    var index = 0
    scan: while index < held.count {
      guard isFirstByte[Int(held[index])] else {
        shown.append(held[index])
        index += 1
        continue
      }
      switch match(at: index, isEnd: isEnd) {
      case .none:
        shown.append(held[index])
        index += 1
      case .whole(let pattern):
        shown += pattern.replacement
        index += pattern.bytes.count
      case .possible: break scan
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
      if !isEnd { return .possible }
    }
    return .none
  }

  /// The patterns of `value`, which is in the variable `name`: the value without final line feeds, which a
  /// shell drops, and its base64. Empty if the value is shorter than ``minimumLength``.
  static func patterns(for value: borrowing SecretBytes, named name: String) -> [Pattern] {
    let length = value.withBytes { bytes in
      var count = bytes.count
      while count > 0, bytes[count - 1] == UInt8(ascii: "\n") { count -= 1 }
      return count
    }
    guard length >= minimumLength else { return [] }
    let line = SecretWriter.bytes(capacity: length + 1) { writer in
      value.withBytes { writer.append($0.extracting(first: length)) }
      writer.append("\n")
    }
    let replacement = Array("[\(name)]".utf8)
    return [
      Pattern(value.prefix(length), replacement: replacement),
      Pattern(value.prefix(length).base64(), replacement: replacement),
      Pattern(line.base64(), replacement: replacement),
      // The base64 of a longer text that begins with the value: complete groups of three bytes do not change.
      Pattern(value.prefix(length - length % 3).base64(), replacement: replacement),
    ]
  }
}
