internal import Coffer
internal import FoundationEssentials

extension SecretBackend {
  /// The login that was stored last, for a program that does not specify a username. Its account is the username, and
  /// its value is the password.
  func latestLogin(inService service: String) throws(SecretError) -> SecretIdentifier? {
    let items = try items(inService: service)
    return items.max { ($0.metadata.modified ?? .distantPast) < ($1.metadata.modified ?? .distantPast) }?.identifier
  }
}
