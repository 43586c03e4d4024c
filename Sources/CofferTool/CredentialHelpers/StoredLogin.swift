internal import Coffer
internal import FoundationEssentials

/// The secrets of one service seen as logins: the account is a user's name, the value the password.
enum StoredLogin {
  /// The login to use where nobody says which: the one stored last.
  static func latest(
    in service: String,
    of store: any SecretBackend
  ) throws(SecretError) -> SecretIdentifier? {
    let items = try store.items(inService: service)
    return items.max {
      ($0.metadata.modified ?? .distantPast) < ($1.metadata.modified ?? .distantPast)
    }?.identifier
  }

  /// Stores `value` and removes all other logins of the service, at once where the store can.
  static func replaceAll(
    _ identifier: SecretIdentifier,
    with value: borrowing SecretBytes,
    in store: any SecretBackend
  ) throws(SecretError) {
    let others = try store.items(inService: identifier.service).map(\.identifier).filter { $0 != identifier }
    if let store = store as? any TransactionalSecretBackend {
      try store.transaction { transaction throws(SecretError) in
        try transaction.store(value, for: identifier, metadata: nil)
        for other in others { try transaction.remove(other) }
      }
    } else {
      try store.store(value, for: identifier)
      for other in others { try store.remove(other) }
    }
  }
}
