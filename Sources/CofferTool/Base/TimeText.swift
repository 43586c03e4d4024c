internal import CofferCore
internal import FoundationEssentials

/// The forms of a time in an option: a moment, a day, or a span from or to now.
enum TimeText {
  static let forms = "2027-01-31, 2027-01-31T12:00:00Z, or a span from now such as 30m, 12h, 90d or 8w"

  static let pastForms = "2027-01-31, 2027-01-31T12:00:00Z, or a span up to now such as 30m, 12h, 90d or 8w"

  /// Parses a time, or returns `nil`. A day is its first moment in UTC.
  static func moment(_ text: String, now: Date) -> Date? {
    span(text).map { now.addingTimeInterval(Double($0)) } ?? absolute(text)
  }

  /// Parses the past time of `option`. A span ends now. A time with seconds means the end of its last second, because
  /// commands print times without fractions.
  static func pastMoment(_ text: String, of option: String, now: Date = Date()) throws(Failure) -> Date {
    if let seconds = span(text) { return now.addingTimeInterval(-Double(seconds)) }
    guard let moment = absolute(text) else {
      throw .usage("“\(text)” is not a valid time for \(option). Write \(pastForms).")
    }
    return text.contains("T") ? moment.addingTimeInterval(0.999) : moment
  }

  private static func absolute(_ text: String) -> Date? {
    let shape = String(decoding: text.utf8.map { $0.isASCIIDigit ? UInt8(ascii: "0") : $0 }, as: UTF8.self)
    let (style, inUTC): (Date.ISO8601FormatStyle, String)
    switch shape {
    case "0000-00-00": (style, inUTC) = (.iso8601.year().month().day(), text)
    case "0000-00-00T00:00:00Z", "0000-00-00T00:00:00+00:00", "0000-00-00T00:00:00-00:00":
      (style, inUTC) = (.iso8601, text.prefix(19) + "Z")
    default: return nil
    }
    // The system's parser converts a time that does not exist, such as 30 February to 2 March.
    guard let moment = try? Date(inUTC, strategy: style), moment.formatted(style) == inUTC else { return nil }
    return try? Date(text, strategy: style)
  }

  /// Parses a span such as `30m` into seconds, up to a hundred years, or returns `nil`.
  static func span(_ text: String) -> Int? {
    let units: [Character: Int] = ["s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800]
    guard let last = text.last, let unit = units[last] else { return nil }
    let digits = text.dropLast()
    // Int accepts a sign.
    guard digits.utf8.allSatisfy(\.isASCIIDigit), let number = Int(digits) else { return nil }
    let (seconds, overflow) = number.multipliedReportingOverflow(by: unit)
    return overflow || seconds == 0 || seconds > 36_525 * 86_400 ? nil : seconds
  }
}
