internal import Coffer
internal import FoundationEssentials

/// What git says about a credential: a description to match by, or a credential to store.
///
/// In the store, a password for `https://host:8443/path` and the user `ann` is the secret with the service
/// `git:https://host:8443/path` and the account `ann`; without `credential.useHttpPath` git gives no path, and
/// the service ends with the host. A credential without a username has the account `(none)`, and a username
/// that begins with a parenthesis gets one more in front. The moment it expires is the secret's own. The
/// attribute `authtype` is there where the value is a `credential` of that type and no password. An OAuth refresh
/// token is a secret too, in the service `git-refresh:…` under the same account.
struct GitCredential {
  var protocolName: String?
  var host: String?
  var path: String?
  var username: String?

  static let scheme = "git:"
  static let refreshScheme = "git-refresh:"
  /// The metadata attribute with the type of a credential that is no password.
  static let authTypeAttribute = "authtype"
  private static let nobody = "(none)"

  init(_ lines: SecretLines) {
    protocolName = lines.text("protocol")
    host = lines.text("host")
    path = lines.text("path")
    username = lines.text("username")
  }

  /// What a stored secret is for, or `nil` where it is not one of git's.
  init?(_ identifier: SecretIdentifier) {
    guard identifier.service.utf8.starts(with: Self.scheme.utf8) else { return nil }
    let url = Array(identifier.service.utf8.dropFirst(Self.scheme.utf8.count))
    guard let colon = url.firstIndex(of: UInt8(ascii: ":")), url[colon...].starts(with: "://".utf8) else {
      return nil
    }
    protocolName = String(decoding: url[..<colon], as: UTF8.self)
    let rest = url[(colon + 3)...]
    if let slash = rest.firstIndex(of: UInt8(ascii: "/")) {
      host = String(decoding: rest[..<slash], as: UTF8.self)
      path = String(decoding: rest[(slash + 1)...], as: UTF8.self)
    } else {
      host = String(decoding: rest, as: UTF8.self)
    }
    let account = identifier.account
    if account == Self.nobody {
      username = nil
    } else {
      username = account.utf8.starts(with: "((".utf8) ? String(account.dropFirst()) : account
    }
  }

  /// Whether nothing is said at all, so that everything would match.
  var isEmpty: Bool { protocolName == nil && host == nil && path == nil && username == nil }

  /// The service it is stored under, where protocol and host are known. A certificate has no host, and a path.
  /// `nil`, too, where it would read back as another server's: no address has such a protocol or host.
  var service: String? {
    guard let protocolName, !protocolName.isEmpty, host != nil || path != nil,
      !protocolName.utf8.contains(where: { ":/".utf8.contains($0) }),
      host?.utf8.contains(UInt8(ascii: "/")) != true
    else { return nil }
    return Self.scheme + protocolName + "://" + (host ?? "") + (path.map { "/" + $0 } ?? "")
  }

  /// The name it is stored under.
  func identifier() throws(SecretError) -> SecretIdentifier? {
    guard let service else { return nil }
    return try SecretIdentifier(service: service, account: account)
  }

  private var account: String {
    guard let username, !username.isEmpty else { return Self.nobody }
    return username.utf8.first == UInt8(ascii: "(") ? "(" + username : username
  }

  /// Whether `stored` is one that this describes: what is not said here does not matter.
  func describes(_ stored: GitCredential) -> Bool {
    func agrees(_ wanted: String?, _ held: String?) -> Bool {
      wanted.map { $0.utf8.elementsEqual((held ?? "").utf8) } ?? true
    }
    return agrees(protocolName, stored.protocolName) && agrees(host, stored.host)
      && agrees(path, stored.path) && agrees(username, stored.username)
  }

  /// Where the refresh token of a stored credential is.
  static func refreshIdentifier(
    of identifier: SecretIdentifier
  ) throws(SecretError) -> SecretIdentifier {
    try SecretIdentifier(
      service: refreshScheme + identifier.service.dropFirst(scheme.count),
      account: identifier.account
    )
  }
}
