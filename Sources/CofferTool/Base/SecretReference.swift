internal import Coffer

/// A secret's full name, `secret://SERVICE/ACCOUNT`, percent-encoded, for `run` and templates.
enum SecretReference {
  static let scheme = "secret://"
  /// The service of a name that is not a reference, if neither an option, a variable nor the project's file names one.
  static let defaultService = "secret"

  /// The service of names outside of a project: `given`, or else that of COFFER_SERVICE, or else the default.
  static func service(_ given: String?) -> String {
    given ?? Environment.value("COFFER_SERVICE") ?? defaultService
  }

  /// The secret that `text` refers to, or `nil` if it does not begin with the scheme. Throws if it does and is invalid.
  static func identifier(_ text: String) throws -> SecretIdentifier? {
    guard text.utf8.starts(with: scheme.utf8) else { return nil }
    let parts = text.utf8.dropFirst(scheme.utf8.count)
      .split(separator: UInt8(ascii: "/"), maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, !text.utf8.contains(UInt8(ascii: "#")), let service = decoded(parts[0]),
      let account = decoded(parts[1])
    else {
      throw Failure.usage(
        "“\(text)” is not a valid reference. Write \(scheme)SERVICE/ACCOUNT, with %2F for a slash, %23 for a # and %25 for a percent sign."
      )
    }
    return try SecretIdentifier(service: service, account: account)
  }

  /// The reference to a secret. Parsing it returns the same identifier.
  static func text(of identifier: SecretIdentifier) -> String {
    "\(scheme)\(encoded(identifier.service))/\(encoded(identifier.account))"
  }

  private static func encoded(_ text: String) -> String {
    text.utf8.map { $0.isUnreservedInURI ? String(Unicode.Scalar($0)) : "%" + $0.hexadecimal }.joined()
  }

  /// Decodes strictly: two hexadecimal digits after each percent sign, no slash, and a result in UTF-8.
  private static func decoded(_ text: Substring.UTF8View) -> String? {
    var bytes: [UInt8] = []
    var rest = text[...]
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "%"):
        guard let high = rest.popFirst().flatMap(digit), let low = rest.popFirst().flatMap(digit) else { return nil }
        bytes.append(high << 4 | low)
      case UInt8(ascii: "/"): return nil
      default: bytes.append(byte)
      }
    }
    return String(validating: bytes, as: UTF8.self)
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    Character(Unicode.Scalar(byte)).hexDigitValue.map { UInt8($0) }
  }
}
