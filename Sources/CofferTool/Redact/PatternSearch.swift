internal import CofferLibc

/// A search for patterns in output. Valid only during a call of ``RedactionPatterns/search(_:_:)``.
struct PatternSearch {
  let text: UnsafeBufferPointer<UInt8>
  let block: UnsafeBufferPointer<UInt8>
  let filterBits: Int
  let windowSize: Int
  let patterns: [[RedactionPatterns.Pattern]]

  /// The longest pattern that begins at a place.
  struct Match {
    var (end, variable, isContinuation) = (0, 0, false)
    /// Whether more output may complete a longer pattern.
    var isOpen = false
    /// For each kind, the least `beginning` of the patterns that agree with the output. Complete with `findsBeginning`.
    private(set) var beginnings = InlineArray<2, Int?>(repeating: nil)

    mutating func agrees(_ pattern: RedactionPatterns.Pattern, _ kind: Int) {
      beginnings[kind] = min(beginnings[kind] ?? .max, pattern.beginning)
    }
  }

  /// The bit that is set in a filter of `size` bits, a power of two, if a pattern begins with these bytes.
  static func bit(for window: UInt64, of size: Int) -> Int {
    Int((window &* 0x9E37_79B9_7F4A_7C15) >> 32) & (size - 1)
  }

  /// The first match at or after `index`; or, before the end of the output, the first place where a match may begin.
  func first(from index: Int, isEnd: Bool) -> (start: Int, match: Match)? {
    func first(in places: Range<Int>) -> (start: Int, match: Match)? {
      for start in places where mayBegin(with: UInt64(text[start])) {
        var match = match(at: start)
        if isEnd { match.isOpen = false }
        if match.isOpen || match.end > 0 { return (start, match) }
      }
      return nil
    }
    var window: UInt64 = 0
    var count = 0
    var places = InlineArray<16, Int>(repeating: 0)
    /// The place of a byte that is not a separator. The number 1 is the last of these bytes, 2 the one before it.
    func place(_ number: Int) -> Int { number > count ? index - 1 : places[(count - number) % 16] }
    let mask = UInt64.max >> UInt64(64 - 8 * windowSize)
    for next in index..<text.count where !RedactionPatterns.isSeparator(text[next]) {
      places[count % 16] = next
      count += 1
      window = window << 8 | UInt64(text[next])
      guard mayBegin(with: window & mask) else { continue }
      // A pattern may begin with separators.
      if let found = first(in: place(windowSize + 1) + 1..<place(windowSize) + 1) { return found }
    }
    return first(in: place(windowSize) + 1..<text.count)
  }

  private func mayBegin(with window: UInt64) -> Bool {
    let bit = Self.bit(for: window, of: filterBits)
    return block[bit >> 3] & 1 << UInt8(bit & 7) != 0
  }

  /// Compares the output from `start` on with the patterns. Those that may contain separators do not begin with one.
  func match(at start: Int, findsBeginning: Bool = false) -> Match {
    var match = Match()
    for kind in 0...(RedactionPatterns.isSeparator(text[start]) ? 0 : 1) {
      let patterns = patterns[kind]
      var (low, high, depth, position) = (0, patterns.count, 0, start)
      var hasSeparators = false
      while low < high {
        if patterns[low].range.count == depth {
          complete(patterns[low], kind, at: position, &match)
          low += 1
          continue
        }
        // What all of them share is compared at once, so that output which is like itself costs little more.
        let shared = hasSeparators ? 0 : commonLength(patterns[low].range, patterns[high - 1].range, from: depth)
        let length = min(shared, text.count - position)
        if length > 0 {
          if agrees(position, patterns[low].range.lowerBound + depth, length) {
            (position, depth) = (position + length, depth + length)
            continue
          }
          if kind == 0 { break }
          hasSeparators = true
        }
        guard let byte = nextByte(&position, kind) else {
          match.isOpen = true
          if findsBeginning { patterns[low..<high].forEach { match.agrees($0, kind) } }
          break
        }
        /// The first place in the sorted range for which the condition is true.
        func first(_ condition: (UInt8) -> Bool) -> Int {
          var (low, high) = (low, high)
          while low < high {
            let middle = (low + high) / 2
            let isAfter = condition(block[patterns[middle].range.lowerBound + depth])
            if isAfter { high = middle } else { low = middle + 1 }
          }
          return low
        }
        low = first { $0 >= byte }
        high = first { $0 > byte }
        depth += 1
      }
    }
    return match
  }

  /// How many bytes from `depth` on two patterns have in common.
  private func commonLength(_ first: Range<Int>, _ second: Range<Int>, from depth: Int) -> Int {
    let length = min(first.count, second.count)
    if first == second { return length - depth }
    var end = depth
    while end < length, block[first.lowerBound + end] == block[second.lowerBound + end] { end += 1 }
    return end - depth
  }

  /// Whether the output has the same bytes at `place` as the block at `offset`.
  private func agrees(_ place: Int, _ offset: Int, _ length: Int) -> Bool {
    guard let text = text.baseAddress, let block = block.baseAddress else { return false }
    return memcmp(text + place, block + offset, length) == 0
  }

  /// The next byte, after separators if the kind has them, or `nil` at the end of the output.
  private func nextByte(_ position: inout Int, _ kind: Int) -> UInt8? {
    if kind == 1 { while position < text.count, RedactionPatterns.isSeparator(text[position]) { position += 1 } }
    guard position < text.count else { return nil }
    defer { position += 1 }
    return text[position]
  }

  /// Adds a pattern whose bytes end before `end`. If the value ends within a base64 character, that one must agree too.
  private func complete(_ pattern: RedactionPatterns.Pattern, _ kind: Int, at end: Int, _ match: inout Match) {
    match.agrees(pattern, kind)
    var end = end
    if pattern.sharedBits > 0 {
      guard let byte = nextByte(&end, kind) else { return match.isOpen = true }
      guard let bits = PatternWriter.letters.firstIndex(of: byte) else { return }
      if (bits % 64 ^ Int(block[pattern.range.upperBound])) >> (6 - pattern.sharedBits) != 0 { return }
    }
    if end > match.end {
      (match.end, match.variable, match.isContinuation) = (end, pattern.variable, pattern.isContinuation)
    }
  }
}
