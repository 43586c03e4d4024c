package import FoundationEssentials

/// Converts dates to whole milliseconds since 1970, as a vault stores them, and back.
package enum Timestamp {
  /// Returns the milliseconds since 1970, and 0 for `nil`. A date outside of the range (±292 million years) becomes the
  /// nearest end of the range.
  package static func milliseconds(_ date: Date?) -> Int64 {
    guard let date else { return 0 }
    let value = (date.timeIntervalSince1970 * 1000).rounded()
    return Int64(exactly: value) ?? (value < 0 ? .min : .max)
  }

  package static func date(_ milliseconds: Int64) -> Date {
    Date(timeIntervalSince1970: Double(milliseconds) / 1000)
  }
}
