/// What a person should know about a vault's file even though it can be used.
public struct VaultCondition: Hashable, Sendable {
  /// Whether one of the two commit slots was damaged or torn. Then the last change may be missing.
  public internal(set) var isRecovered: Bool
  /// Whether other users may read the file. Its content is encrypted; what can be read without a key is
  /// listed in `VaultFormat`.
  public let isReadableByOthers: Bool
  /// Whether the vault can be changed: it belongs to this user and the system permits writing.
  public let isWritable: Bool
  /// How the vault is compared with its record.
  public let trustPolicy: TrustPolicy
  /// Whether only the record of this path counts for the vault: see ``VaultBackend/trust(_:pin:onlyHere:)``.
  public let countsOnlyHere: Bool
  /// Whether this process was the first to use the vault, as far as its records show.
  public let isFirstUse: Bool
  /// Whether one half of a record of the vault was damaged. The vault was compared with the other half.
  public let isRecordDamaged: Bool
  /// Whether the state of the vault could not be recorded. A later run may not notice an older copy.
  public internal(set) var isUnrecorded: Bool
  /// Whether ``VaultOptions/pins`` are given, and none of them is for a path of this vault: it was compared with none.
  public let ignoresPins: Bool
}
