internal import Coffer

/// Replaces a command's values in its output by the names of their variables.
///
/// Holds back a possible beginning of a value until more output arrives or the output ends, so that a value that is
/// split between two reads is redacted too. Not thread-safe.
struct OutputRedactor {
  /// The least size in bytes of a value that is redacted. Shorter values occur in ordinary words and numbers.
  static let minimumLength = 4

  private let patterns: RedactionPatterns
  /// The output in which a pattern may begin that is not complete yet.
  private var held: [UInt8] = []
  /// The number of bytes at the beginning of `held` that were shown or replaced already.
  private var done = 0
  /// The variable whose name replaced the bytes before ``done``, or `nil` if those were shown.
  private var replaced: Int?

  init(_ patterns: RedactionPatterns) { self.patterns = patterns }

  /// Returns the output that can be shown after `new` has arrived.
  mutating func redact(_ new: ArraySlice<UInt8>) -> [UInt8] {
    held += new
    return take(isEnd: false)
  }

  mutating func finish() -> [UInt8] { take(isEnd: true) }

  /// Returns what may be shown of a possible beginning of a value when the output pauses, because a person may be
  /// waiting for it: at most ``RedactionPatterns/Pattern/beginning`` of every pattern that may follow. What was shown
  /// stays in the search, so that the rest is redacted if the value goes on.
  mutating func showBeginning() -> [UInt8] {
    var end = held.count
    patterns.search(held) { search in
      var index = 0
      while index < end {
        let beginnings = search.match(at: index, findsBeginning: true).beginnings
        for kind in beginnings.indices {
          guard var left = beginnings[kind] else { continue }
          // A separator between the characters shows nothing of the value.
          var place = index
          while place < end {
            if kind == 0 || !RedactionPatterns.isSeparator(held[place]) { left -= 1 }
            if left < 0 { break }
            place += 1
          }
          end = place
        }
        index += 1
      }
    }
    guard end > done else { return [] }
    defer { (done, replaced) = (end, nil) }
    return Array(held[done..<end])
  }

  var isHolding: Bool { held.count > done }

  /// Replaces the union of all matches, which may overlap. A match that continues one of the same variable adds no
  /// name.
  private mutating func take(isEnd: Bool) -> [UInt8] {
    var shown: [UInt8] = []
    shown.reserveCapacity(held.count)
    var (index, done, replaced) = (0, done, replaced)
    func show(to end: Int) {
      if end <= done { return }
      shown += held[done..<end]
      (done, replaced) = (end, nil)
    }
    patterns.search(held) { search in
      while let (start, match) = search.first(from: index, isEnd: isEnd) {
        show(to: start)
        index = start
        if match.isOpen { return }
        if match.end > done {
          let isSame = replaced == match.variable && (start < done || match.isContinuation)
          if !isSame { shown += patterns.replacements[match.variable] }
          (done, replaced) = (match.end, match.variable)
        }
        index += 1
      }
      index = held.count
      show(to: index)
    }
    held.removeFirst(index)
    (self.done, self.replaced) = (done - index, replaced)
    return shown
  }
}
