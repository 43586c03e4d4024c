package import FoundationEssentials

/// Times as the format has them: whole milliseconds since 1970.
package enum Timestamp {
  package static func milliseconds(_ date: Date?) -> Int64 {
    guard let date else { return 0 }
    // A date may lie anywhere; the format's range is ±292 million years.
    let value = (date.timeIntervalSince1970 * 1000).rounded()
    return Int64(exactly: value) ?? (value < 0 ? .min : .max)
  }

  package static func date(_ milliseconds: Int64) -> Date {
    Date(timeIntervalSince1970: Double(milliseconds) / 1000)
  }
}
