/// A backend that other programs use as well, in which several different items may have one identifier.
///
/// `lookUp` and `item` read the item that was changed last. `store` changes an item of another program only if no other
/// item has the identifier. `remove` throws `.ambiguous` if the items are different secrets. What “an error of the store” is,
/// ``SecretBackend`` lists.
public protocol MultipleItemSecretBackend: SecretBackend {
  /// Returns each different secret with the identifier. `lookUp` reads the first one. Throws an error of the store.
  func differentItems(_ identifier: SecretIdentifier) throws(SecretError) -> [SecretItem]

  /// Returns the items in `service`, or in the whole store if it is `nil`, that `items(inService:)` leaves out. Locked
  /// items without an identifier are not among them. Throws an error of the store.
  func unlistedItems(inService service: String?) throws(SecretError) -> [UnlistedItem]

  /// Removes all items with the identifier. Returns `false` if there is none. Throws an error of the store.
  @discardableResult
  func removeAll(_ identifier: SecretIdentifier) throws(SecretError) -> Bool

  /// Gives the secret the identifier `new`, with its value, its metadata and the attributes that other programs gave it.
  ///
  /// Nothing is changed unless the result is `.moved`. If `all` is `true`, different secrets with the identifier are all
  /// moved. If `replacing` is `true`, an existing secret with the identifier `new` is removed last.
  ///
  /// Throws `.ambiguous` if `all` is `false` and the items with the identifier are different secrets, and else an error of
  /// the store.
  func move(
    _ identifier: SecretIdentifier, to new: SecretIdentifier, replacing: Bool, all: Bool
  ) throws(SecretError) -> SecretMoveOutcome
}

/// An item that ``SecretAccess/items(inService:)`` leaves out.
public struct UnlistedItem: Hashable, Sendable {
  /// What a person sees of the item: its label, or else its attributes.
  public let title: String
  /// The identifier of the item, if another item with the same identifier is listed. `nil` if the program that stored the
  /// item gave it no service or no user name.
  public let identifier: SecretIdentifier?

  /// Creates a description of an item.
  public init(title: String, identifier: SecretIdentifier?) {
    self.title = title
    self.identifier = identifier
  }
}

/// The result of ``MultipleItemSecretBackend/move(_:to:replacing:all:)``.
public enum SecretMoveOutcome: Sendable {
  /// The secret has the new identifier.
  case moved
  /// There is no such secret.
  case missing
  /// Another secret has the new identifier.
  case taken
}
