internal import Coffer
internal import FoundationEssentials

/// The secrets of a service as logins: the account is the username, and the value is the password.
enum StoredLogin {
  /// The login that was stored last, for a program that does not specify a username.
  static func latest(
    in service: String, of backend: any SecretBackend
  ) throws(SecretError) -> SecretIdentifier? {
    let items = try backend.items(inService: service)
    return items.max {
      ($0.metadata.modified ?? .distantPast) < ($1.metadata.modified ?? .distantPast)
    }?.identifier
  }
}
