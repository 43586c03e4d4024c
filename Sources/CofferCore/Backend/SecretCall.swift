/// A call on secrets, of a backend or of a transaction: what ``ForwardingBackend/decorate(_:for:)`` is told.
public enum SecretCall: Hashable, Sendable {
  /// `secret` or `lookUp` of a secret, or of one of its versions.
  case value(SecretIdentifier)
  /// `forEachSecret`, of a service or of all.
  case values(inService: String?)
  /// `item` or `versions`.
  case item(SecretIdentifier)
  /// `items` or `removedItems`, of a service or of all.
  case items(inService: String?)
  /// `store`.
  case store(SecretIdentifier)
  /// `remove` or `erase`.
  case remove(SecretIdentifier)
  /// `move`.
  case move(SecretIdentifier, to: SecretIdentifier)
  /// The commit of a transaction, after its closure has returned.
  case commit

  /// Whether the call changes the secret.
  public var isChange: Bool {
    switch self {
    case .value, .values, .item, .items, .commit: false
    case .store, .remove, .move: true
    }
  }
}
