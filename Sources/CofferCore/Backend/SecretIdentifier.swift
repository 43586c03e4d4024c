internal import CofferLibc

/// The name of a secret: a service and an account, which are the attributes that keyrings on Linux use.
///
/// Identifiers are compared and sorted by their UTF-8 bytes, service first. Two Unicode spellings of one text are
/// therefore different identifiers, unlike with the `==` of `String`.
public struct SecretIdentifier: Sendable {
  /// The application or site that the secret belongs to: 1…1024 UTF-8 bytes without NUL.
  public let service: String
  /// The name of the secret within the service: 1…1024 UTF-8 bytes without NUL.
  public let account: String

  /// The maximum length of a service or account in UTF-8 bytes.
  package static let maximumLength = 1024

  /// Creates an identifier. Throws `.invalidIdentifier` if either part is empty, longer than 1024 bytes, or contains a
  /// NUL.
  public init(service: String, account: String) throws(SecretError) {
    try Self.validate(service, named: "service")
    try Self.validate(account, named: "account")
    (self.service, self.account) = (service, account)
  }

  private static func validate(_ text: String, named part: String) throws(SecretError) {
    func refuse(_ predicate: String, advice: String) throws(SecretError) -> Never {
      throw SecretError(.invalidIdentifier, "The \(part) \(predicate).", advice: advice)
    }
    let length = text.utf8.count
    if length == 0 { try refuse("is empty", advice: "Give it at least one character.") }
    if length > maximumLength {
      try refuse("is \(length) bytes long", advice: "Use at most \(maximumLength) bytes.")
    }
    if text.utf8.contains(0) { try refuse("contains a NUL", advice: "Remove it.") }
  }
}

extension SecretIdentifier: Hashable {
  /// Whether both have the same UTF-8 bytes.
  public static func == (left: Self, right: Self) -> Bool {
    left.account.order(to: right.account) == 0 && left.service.order(to: right.service) == 0
  }

  /// Hashes the UTF-8 bytes.
  public func hash(into hasher: inout Hasher) {
    // 0xFF does not occur in UTF-8, so ("ab", "c") and ("a", "bc") have different hashes.
    var (service, account) = (service, account)
    service.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    hasher.combine(0xFF as UInt8)
    account.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
  }
}

extension SecretIdentifier: Comparable {
  /// Compares the UTF-8 bytes, service first.
  public static func < (left: Self, right: Self) -> Bool {
    let order = left.service.order(to: right.service)
    return (order == 0 ? left.account.order(to: right.account) : order) < 0
  }
}

extension String {
  /// The order of the UTF-8 bytes: negative, 0 or positive. Faster than a comparison of two `utf8` views.
  fileprivate func order(to other: String) -> Int {
    var (left, right) = (self, other)
    return left.withUTF8 { left in
      right.withUTF8 { right in
        guard let one = left.baseAddress, let two = right.baseAddress else { return left.count - right.count }
        let order = memcmp(one, two, min(left.count, right.count))
        return order == 0 ? left.count - right.count : Int(order)
      }
    }
  }
}

extension SecretIdentifier: CustomStringConvertible {
  /// `service/account`, for messages. The text cannot be parsed, because both parts may contain slashes.
  public var description: String { "\(service)/\(account)" }
}
