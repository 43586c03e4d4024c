internal import CofferCore
internal import FoundationEssentials

/// The types that are stored as text without quotation marks, so that shells and other programs can read and write
/// them.
enum PlainText {
  static func isText(_ type: any Any.Type) -> Bool {
    if type == String.self || type == URL.self || type == UUID.self || type == Date.self { return true }
    // The first cast is cheap, and fails for nearly every type.
    return type is any RawRepresentable.Type && type is any RawRepresentable<String>.Type
  }

  /// The text of a value, or `nil` if its type is not stored as text.
  static func text<Value>(of value: Value) throws(SecretError) -> String? {
    // Asks the type, because a cast of the value can change it.
    if !isText(Value.self) { return nil }
    switch value {
    case let text as String: return text
    case let url as URL: return url.absoluteString
    case let id as UUID: return id.uuidString
    case let date as Date: return try DateText.text(of: date)
    case let value as any RawRepresentable<String>: return value.rawValue
    default: return nil
    }
  }

  /// Returns the value of `type` that `text` stands for. Throws `.decodingFailed`.
  static func value<Value>(of type: Value.Type, in text: String) throws(SecretError) -> Value {
    let value: Any? =
      switch type {
      case is String.Type: text
      case is URL.Type: URL(string: text)
      case is UUID.Type: UUID(uuidString: text)
      case is Date.Type: DateText.date(in: text)
      case let type as any RawRepresentable<String>.Type: type.init(rawValue: text)
      default: nil
      }
    if let value = value as? Value { return value }
    throw SecretError(.decodingFailed, "The text is not a valid \(Value.self).")
  }
}

/// Dates as text in UTC.
enum DateText {
  /// The date in ISO 8601, such as `2026-11-22T08:30:00.125Z`, exact to a nanosecond. Throws `.encodingFailed` outside
  /// the years 1 to 9999.
  static func text(of date: Date) throws(SecretError) -> String {
    let time = date.timeIntervalSinceReferenceDate
    // 0001-01-01 and 10000-01-01.
    guard time >= -63_114_076_800, time < 252_455_616_000 else {
      throw SecretError(.encodingFailed, "The date is not in the years 1 to 9999.")
    }
    let seconds = time.rounded(.down)
    let whole = Date.ISO8601FormatStyle().format(Date(timeIntervalSinceReferenceDate: seconds))
    if time == seconds { return whole }
    var text = whole
    for digits in [3, 6, 9] {
      guard let fraction = decimals(time - seconds, digits) else { continue }
      text = "\(whole.dropLast()).\(fraction)Z"
      if Self.date(in: text) == date { break }
    }
    return text
  }

  /// Returns a fraction below 1 as decimal digits, or `nil` if it is rounded to 1.
  private static func decimals(_ fraction: Double, _ digits: Int) -> String? {
    var scale = 1.0
    for _ in 0..<digits { scale *= 10 }
    let number = Int((fraction * scale).rounded())
    guard Double(number) < scale else { return nil }
    let text = String(number)
    return String(repeating: "0", count: digits - text.count) + text
  }

  /// Whether `text` is `Z`, or a difference to UTC such as `+01:00` or `+0100`.
  private static func isZone(_ text: Substring) -> Bool {
    if text == "Z" { return true }
    let digits = text.dropFirst().filter { $0 != ":" }
    return (text.hasPrefix("+") || text.hasPrefix("-")) && digits.count == 4
      && digits.allSatisfy { $0.isASCII && $0.isNumber }
  }

  /// Returns the date in `text`, which is ISO 8601 or a number of seconds since 1970.
  static func date(in text: String) -> Date? {
    if !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) || $0 == 45 || $0 == 46 }),
      let seconds = Double(text)
    {
      return Date(timeIntervalSince1970: seconds)
    }
    var whole = text
    var fraction = 0.0
    if let point = text.firstIndex(of: ".") {
      let digits = text[text.index(after: point)...].prefix { $0.isASCII && $0.isNumber }
      guard !digits.isEmpty, let value = Double("0." + digits) else { return nil }
      fraction = value
      whole.removeSubrange(point..<digits.endIndex)
    }
    // The parser ignores what follows the time zone.
    guard isZone(whole.dropFirst("2026-11-22T08:30:00".count)) else { return nil }
    do { return try Date.ISO8601FormatStyle().parse(whole) + fraction } catch { return nil }
  }
}
