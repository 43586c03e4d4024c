/// What a person should know about a vault's file even though it can be used.
package struct VaultCondition: Hashable, Sendable {
  /// Whether one of the two commit slots was damaged or torn. Then the last change may be missing.
  package internal(set) var isRecovered: Bool
  /// Whether other users may read the file. Its content is encrypted; what can be read without a key is
  /// listed in `VaultFormat`.
  package let isReadableByOthers: Bool
  /// Whether the vault can be changed: it belongs to this user and the system permits writing.
  package let isWritable: Bool
  /// How the vault is compared with its record.
  package let trustPolicy: TrustPolicy
  /// Whether only the record of this path counts for the vault: see ``VaultBackend/trust(_:pin:onlyHere:)``.
  package let countsOnlyHere: Bool
  /// Whether this process was the first to use the vault, as far as its records show.
  package let isFirstUse: Bool
  /// Whether one half of a record of the vault was damaged. The vault was compared with the other half.
  package let isRecordDamaged: Bool
  /// Whether the state of the vault could not be recorded. A later run may not notice an older copy.
  package internal(set) var isUnrecorded: Bool
  /// Whether ``VaultOptions/pins`` are given, and none of them is for a path of this vault: it was compared with none.
  package let ignoresPins: Bool
}
