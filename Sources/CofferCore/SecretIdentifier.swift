/// Names one secret: a service and an account, the pair that every keyring on Linux already uses.
///
/// Identity is bytes. Swift's `==` on strings equates different Unicode spellings of the same text; two
/// identifiers are equal only when their UTF-8 bytes are, and they sort by those bytes, service first.
public struct SecretIdentifier: Sendable {
  /// The application or site the secret belongs to: 1…1024 UTF-8 bytes without NUL.
  public let service: String
  /// The name of the secret within the service: 1…1024 UTF-8 bytes without NUL.
  public let account: String

  /// The longest service or account, in UTF-8 bytes.
  public static let maximumLength = 1024

  /// Makes an identifier, or throws `.invalidIdentifier` where either part is empty, longer than
  /// ``maximumLength`` bytes, or has a NUL in it.
  public init(service: String, account: String) throws(SecretError) {
    try Self.validate(service, named: "service")
    try Self.validate(account, named: "account")
    self.service = service
    self.account = account
  }

  private static func validate(_ text: String, named part: String) throws(SecretError) {
    let length = text.utf8.count
    if length == 0 {
      throw SecretError(
        .invalidIdentifier,
        "The \(part) is empty.",
        advice: "Give it at least one character."
      )
    }
    if length > maximumLength {
      throw SecretError(
        .invalidIdentifier,
        "The \(part) is \(length) bytes long.",
        advice: "Use at most \(maximumLength) bytes."
      )
    }
    if text.utf8.contains(0) {
      throw SecretError(.invalidIdentifier, "The \(part) has a NUL in it.", advice: "Leave it out.")
    }
  }
}

extension SecretIdentifier: Hashable {
  public static func == (left: Self, right: Self) -> Bool {
    left.service.utf8.elementsEqual(right.service.utf8) && left.account.utf8.elementsEqual(right.account.utf8)
  }

  public func hash(into hasher: inout Hasher) {
    // 0xFF is in no UTF-8 text: it keeps ("ab", "c") and ("a", "bc") apart.
    for byte in service.utf8 { hasher.combine(byte) }
    hasher.combine(0xFF as UInt8)
    for byte in account.utf8 { hasher.combine(byte) }
  }
}

extension SecretIdentifier: Comparable {
  public static func < (left: Self, right: Self) -> Bool {
    if left.service.utf8.elementsEqual(right.service.utf8) {
      return left.account.utf8.lexicographicallyPrecedes(right.account.utf8)
    }
    return left.service.utf8.lexicographicallyPrecedes(right.service.utf8)
  }
}

extension SecretIdentifier: CustomStringConvertible {
  /// `service/account`, for messages. It cannot be parsed back: both parts may hold slashes.
  public var description: String { "\(service)/\(account)" }
}
