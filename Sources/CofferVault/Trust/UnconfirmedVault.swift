package import CofferCore

/// What a vault is compared with when it is opened. Authentic bytes alone may be those of an older copy.
package enum VaultComparison: String, Hashable, Sendable {
  /// The pins in ``VaultOptions/pins`` that apply to the vault.
  case pin
  /// What was recorded of the vault in ``VaultOptions/knownVaultsDirectory``.
  case record
  /// Nothing: no pin applies, and no record shows an earlier use.
  case nothing
}

/// What a person should know of a vault before it is trusted as it is.
package struct UnconfirmedVault {
  package let pin: String
  /// Whether one of ``VaultOptions/pins`` was compared with it.
  package let isPinned: Bool
  /// Why the vault is refused, or `nil` if it is not.
  package let refusal: SecretError?
  /// The error if a master key of the vault was seen at any path, and this one does not follow from it.
  package let keyRefusal: SecretError?
  /// Whether the vault is not refused, and its file does not show the newest state that was seen of the vault.
  package let isBehind: Bool
}
