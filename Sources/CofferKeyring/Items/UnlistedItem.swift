#if Keyring
package import CofferCore

/// An item that a list of secrets leaves out.
package struct UnlistedItem: Hashable, Sendable {
  /// What a person sees of the item: its label, or else its attributes.
  package let title: String
  /// The identifier of the item, if another item with the same identifier is listed. `nil` if the program that stored the
  /// item gave it no service or no user name.
  package let identifier: SecretIdentifier?

  package init(title: String, identifier: SecretIdentifier?) {
    (self.title, self.identifier) = (title, identifier)
  }
}
#endif
