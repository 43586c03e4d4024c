internal import CofferCore
internal import CofferVaultFormat

/// A kind of key slot: which credentials fit it, and how a credential becomes the key that wraps the master
/// key.
///
/// A new kind is its parameters in `CofferVaultFormat`, a conformance of them to this protocol, and an entry
/// in ``KeySlot/kinds``.
protocol KeySlotScheme: KeySlotParameters {
  /// The kind of credential that opens the slot.
  static var kind: VaultCredential.Kind { get }

  /// The cost of ``key(for:environment:)``, or `nil` if it is negligible.
  var cost: VaultKeySlot.Cost? { get }

  /// Returns what a new slot for `credential` needs, or `nil` if no slot of this kind fits the credential.
  /// Throws `.invalidKey` if the credential is malformed, and `.tooLarge` if the slot and `others` would cost more
  /// than the limits of `options`.
  static func newSlot(
    for credential: borrowing VaultCredential, beside others: [KeySlot], options: VaultOptions,
    environment: VaultEnvironment
  ) throws(SecretError) -> NewSlot?

  /// Returns the slot's key as `credential` gives it, or `nil` if the credential does not fit this kind. The
  /// key is the right one only if it unwraps the slot.
  ///
  /// The caller has taken the cost out of a ``DerivationBudget``.
  func key(
    for credential: borrowing VaultCredential, environment: VaultEnvironment
  ) throws(SecretError) -> SlotKey?
}

/// The parameters of a new slot, and the key that wraps in it.
struct NewSlot: ~Copyable {
  let parameters: any KeySlotParameters
  let key: SlotKey
}

extension KeySlot {
  /// `nil` if the slot is of an unknown kind.
  var scheme: (any KeySlotScheme)? { parameters as? any KeySlotScheme }

  /// Makes a slot in which `credential` wraps the master key of `keys`, for a vault that has the slots `others`.
  ///
  /// Throws `.invalidKey` if the credential fits no kind of slot, `.invalidMetadata` for a label that is too long
  /// or contains a NUL, and `.tooLarge` if the slots together would cost more than the limits of `options`.
  static func make(
    _ credential: borrowing VaultCredential, for keys: DerivedKeys, vault: Bytes16, label: String,
    beside others: [KeySlot] = [], options: VaultOptions, environment: VaultEnvironment
  ) throws(SecretError) -> KeySlot {
    guard label.utf8.count <= Layout.maximumSlotLabelLength, !label.utf8.contains(0) else {
      throw SecretError(
        .invalidMetadata,
        "A key slot's label is longer than \(Layout.maximumSlotLabelLength) bytes or contains a NUL.",
        advice: "Shorten it.")
    }
    for kind in kinds {
      guard let scheme = kind as? any KeySlotScheme.Type,
        let slot = try scheme.newSlot(
          for: credential, beside: others, options: options, environment: environment)
      else { continue }
      let header = KeySlot.header(
        id: environment.randomness.bytes16(), parameters: slot.parameters,
        created: Timestamp.milliseconds(environment.now()), label: label)
      return try slot.key.wrap(
        keys.master, vault: vault, slotHeader: header, randomness: environment.randomness)
    }
    throw SecretError(
      .invalidKey, "No kind of key slot fits a \(credential.kind).", advice: "Use a key or a passphrase.")
  }
}
