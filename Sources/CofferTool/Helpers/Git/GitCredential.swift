internal import Coffer

/// A credential in git's protocol: a pattern for stored credentials, or a credential to store.
///
/// The password of the user `ann` for `https://host:8443/path` is the secret `ann` in the service
/// `git:https://host:8443/path`. Without `credential.useHttpPath`, git sends no path, and the service ends with the
/// host. A credential without a username has the account `(none)`; a username that begins with a parenthesis is stored
/// with one more in front. The time of expiry is the secret's own. If the value is a `credential` of some type instead
/// of a password, the attribute `authtype` has the type. An OAuth refresh token is a secret with the same account in
/// the service `git-refresh:…`.
struct GitCredential {
  var protocolName: String?
  var host: String?
  var path: String?
  var username: String?

  static let scheme = "git:"
  static let refreshScheme = "git-refresh:"
  /// The metadata attribute with the type of a credential other than a password.
  static let authTypeAttribute = "authtype"
  private static let noUsername = "(none)"

  init(_ lines: GitCredentialLines) {
    (protocolName, host) = (lines.text("protocol"), lines.text("host"))
    (path, username) = (lines.text("path"), lines.text("username"))
  }

  /// The credential that a stored secret is for, or `nil` if the secret is not one of git's.
  init?(_ identifier: SecretIdentifier) {
    guard identifier.service.utf8.starts(with: Self.scheme.utf8) else { return nil }
    let url = Array(identifier.service.utf8.dropFirst(Self.scheme.utf8.count))
    guard let colon = url.firstIndex(of: UInt8(ascii: ":")), url[colon...].starts(with: "://".utf8) else { return nil }
    protocolName = String(decoding: url[..<colon], as: UTF8.self)
    let rest = url[(colon + 3)...]
    let slash = rest.firstIndex(of: UInt8(ascii: "/"))
    host = String(decoding: rest[..<(slash ?? rest.endIndex)], as: UTF8.self)
    path = slash.map { String(decoding: rest[($0 + 1)...], as: UTF8.self) }
    let account = identifier.account
    if account != Self.noUsername {
      username = account.utf8.starts(with: "((".utf8) ? String(account.dropFirst()) : account
    }
  }

  /// Whether the pattern names one server: a protocol and a host. The protocol `cert` has an empty host, and the path
  /// is the file of the certificate.
  var namesServer: Bool {
    guard let protocolName, !protocolName.isEmpty, let host else { return false }
    return !host.isEmpty || path?.isEmpty == false
  }

  /// The service of the stored secret, or `nil` without a protocol and a host. A certificate has a path and no host.
  /// Also `nil` if the service would be parsed as another server's: no URL has such a protocol or host.
  var service: String? {
    guard let protocolName, !protocolName.isEmpty, host != nil || path != nil,
      !protocolName.utf8.contains(where: { ":/".utf8.contains($0) }),
      host?.utf8.contains(UInt8(ascii: "/")) != true
    else { return nil }
    return Self.scheme + protocolName + "://" + (host ?? "") + (path.map { "/" + $0 } ?? "")
  }

  func identifier() throws(SecretError) -> SecretIdentifier? {
    guard let service else { return nil }
    return try SecretIdentifier(service: service, account: account)
  }

  private var account: String {
    guard let username, !username.isEmpty else { return Self.noUsername }
    return username.utf8.first == UInt8(ascii: "(") ? "(" + username : username
  }

  /// Whether `stored` matches this pattern: a field that the pattern does not have matches any value.
  func matches(_ stored: GitCredential) -> Bool {
    func agrees(_ wanted: String?, _ actual: String?) -> Bool {
      wanted.map { $0.utf8.elementsEqual((actual ?? "").utf8) } ?? true
    }
    return agrees(protocolName, stored.protocolName) && agrees(host, stored.host)
      && agrees(path, stored.path) && agrees(username, stored.username)
  }

  static func refreshIdentifier(of identifier: SecretIdentifier) throws(SecretError) -> SecretIdentifier {
    try SecretIdentifier(
      service: refreshScheme + identifier.service.dropFirst(scheme.count), account: identifier.account)
  }
}
