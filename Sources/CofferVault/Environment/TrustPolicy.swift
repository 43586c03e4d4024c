internal import CofferVaultFormat

/// How a vault is compared with the state in which it was seen before.
package enum TrustPolicy: Hashable, Sendable {
  /// The vault must be the one that was seen, and its state may not go back.
  case strict
  /// The vault must be the one that was seen, with the same master key or a later one. Its state may go back, as in a
  /// work tree of a version control system.
  case versioned

  var recorded: KnownVaultRecord.Policy { self == .versioned ? .versioned : .strict }
}
