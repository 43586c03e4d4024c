internal import Coffer
internal import CofferLibc

/// What ``OutputRedactor`` searches for: the values of variables, and the forms in which programs print them.
///
/// The patterns are sorted. Those that agree with the output are a range, which each byte makes smaller, so the time of
/// a search hardly depends on their number. All that reveals a value is in one block of guarded memory.
final class RedactionPatterns: Sendable {
  struct Pattern {
    /// The number of the variable, whose name replaces the pattern.
    let variable: Int
    /// The place of the pattern's bytes in the block.
    let range: Range<Int>
    /// How many of its bytes may be shown before the rest has arrived: those with the first two bytes of the value, and
    /// at most half of all.
    let beginning: Int
    /// How many bits of the next byte belong to the value, which may end within a character of base64.
    let sharedBits: Int
    /// Whether it is a later piece of a long value, whose earlier piece is the pattern before it.
    let isContinuation: Bool
  }

  /// Whether base64 and hexadecimal may have this byte between others: a tab, a byte of a line end, a space or a colon.
  static func isSeparator(_ byte: UInt8) -> Bool { byte <= 0x3A && [0x09, 0x0A, 0x0D, 0x20, 0x3A].contains(byte) }

  let replacements: [[UInt8]]
  /// The two kinds: patterns that are found only as they are, and patterns that are found with separators too.
  let patterns: [[Pattern]]
  /// A filter of the patterns' first bytes and first windows, and the bytes of the patterns.
  private let block: SecretBytes
  private let filterSize: Int
  /// The number of bytes in a window, not counting separators: the length of the shortest pattern, but at most 8.
  private let windowSize: Int

  init(_ values: [(variable: String, value: SecretBytes)]) {
    replacements = values.map { Array("[\($0.variable)]".utf8) }
    let limit = PatternWriter.limit(for: values.map { $0.value.count })
    func write(to block: UnsafeMutableRawBufferPointer?, at offset: Int) -> PatternWriter {
      var writer = PatternWriter(to: block, at: offset, limit: limit)
      for (index, value) in values.enumerated() { writer.add(value.value, of: index) }
      return writer
    }
    let measured = write(to: nil, at: 0)
    var size = 1024
    while size < 16 * measured.patterns.reduce(0, { $0 + $1.count }) { size *= 2 }
    var patterns: [[Pattern]] = []
    var windowSize = 8
    block = SecretBytes(count: size + measured.count) { block in
      guard let start = block.baseAddress else { return }
      patterns = write(to: block, at: size).patterns
      for kind in patterns.indices {
        patterns[kind].sort { first, second in
          let (first, second) = (first.range, second.range)
          let common = min(first.count, second.count)
          let order = memcmp(start + first.lowerBound, start + second.lowerBound, common)
          return order == 0 ? first.count < second.count : order < 0
        }
        // The pieces of a value that is like itself are the same.
        patterns[kind] = patterns[kind].reduce(into: []) { distinct, pattern in
          if let last = distinct.last, last.variable == pattern.variable, last.sharedBits == pattern.sharedBits,
            block[last.range].elementsEqual(block[pattern.range])
          {
            return
          }
          distinct.append(pattern)
        }
      }
      func window(_ pattern: Pattern, of size: Int) -> (bytes: UInt64, count: Int) {
        var (bytes, count) = (UInt64(0), 0)
        for byte in block[pattern.range] where !Self.isSeparator(byte) {
          bytes = bytes << 8 | UInt64(byte)
          count += 1
          if count == size { break }
        }
        return (bytes, count)
      }
      windowSize = patterns.joined().reduce(8) { min($0, window($1, of: 8).count) }
      for pattern in patterns.joined() {
        for window in [UInt64(block[pattern.range.lowerBound]), window(pattern, of: windowSize).bytes] {
          let bit = PatternSearch.bit(for: window, of: 8 * size)
          block[bit / 8] |= 1 << UInt8(bit % 8)
        }
      }
    }
    (self.patterns, filterSize, self.windowSize) = (patterns, size, windowSize)
  }

  func search<R>(_ text: [UInt8], _ body: (PatternSearch) -> R) -> R {
    block.withBytes { block in
      block.withUnsafeBufferPointer { block in
        text.withUnsafeBufferPointer { text in
          body(
            PatternSearch(
              text: text, block: block, filterBits: 8 * filterSize, windowSize: windowSize, patterns: patterns
            ))
        }
      }
    }
  }
}
