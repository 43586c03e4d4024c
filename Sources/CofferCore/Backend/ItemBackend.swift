/// A backend in which other programs can keep several items under one identifier, as in a keyring.
package protocol ItemBackend: SecretBackend {
  /// Returns the items with this identifier that are different secrets, the newest first. Throws an error of the store.
  func differentItems(_ identifier: SecretIdentifier) throws(SecretError) -> [SecretItem]

  /// Returns the items that `items` leaves out. Throws an error of the store.
  func unlistedItems(inService service: String?) throws(SecretError) -> [UnlistedItem]

  /// Deletes every item with this identifier. Returns `false` if there was none. Throws an error of the store; some of
  /// several items may then be deleted.
  @discardableResult
  func removeAll(_ identifier: SecretIdentifier) throws(SecretError) -> Bool

  /// Like `move(_:to:replacing:)`, with all items that have the identifier.
  func moveAll(_ identifier: SecretIdentifier, to new: SecretIdentifier, replacing: Bool) throws(SecretError)

  /// Makes lists leave out the items that cannot be read, and call `observer` with a description and the error of each.
  /// Without an observer, such an item ends a list with the error. The same holds for values that are read together.
  func leaveOutUnreadable(_ observer: @escaping @Sendable (String, SecretError) -> Void)
}

/// An item that is in no list of a backend.
package struct UnlistedItem: Hashable, Sendable {
  /// What a person sees of the item: its label, or else its attributes.
  package let title: String
  /// `nil` if the program that stored the item gave it no service or no user name. Otherwise, another item with the
  /// identifier is listed.
  package let identifier: SecretIdentifier?

  package init(title: String, identifier: SecretIdentifier?) { (self.title, self.identifier) = (title, identifier) }
}
