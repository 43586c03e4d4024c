/// What a person should know about a vault even though it can be used.
package enum VaultNotice: CaseIterable, Sendable {
  /// One of the two commit slots was damaged or torn. The last change may be missing.
  case recovered
  /// One half of a record of the vault was damaged. The vault was compared with the other half.
  case recordDamaged
  /// The state of the vault could not be recorded. A later run may not notice an older copy.
  case unrecorded
  /// This process was the first to use the vault, as far as its records show.
  case firstUse
  /// The policy of the vault is ``TrustPolicy/versioned``.
  case versioned
  /// The file is older than the newest state that was seen of the vault at any path, or is another branch of it.
  case behind
  /// The same, and the state was not the last one that was seen at this path.
  case behindAnew
  /// Only the record of this path counts for the vault: see ``VaultBackend/trust(_:pin:onlyHere:)``.
  case countsOnlyHere
  /// The vault cannot be changed: it belongs to another user, or the system does not permit writing.
  case readOnly
  /// Other users may read the file. Its content is encrypted; `VaultFormat` lists what can be read without a key.
  case readableByOthers
}
