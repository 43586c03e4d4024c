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

  /// Returns the parameters of a new slot for `credential`, which is of this kind. Throws `.invalidKey` if it is malformed,
  /// and `.configuration` if `options` set a cost below the minimum.
  static func new(
    for credential: borrowing VaultCredential, options: VaultOptions, _ randomness: any Randomness
  ) throws(SecretError) -> Self

  /// Returns the slot's key as `credential`, which is of this kind, gives it. The key is the right one only if it unwraps
  /// the slot. Throws `.invalidKey` if the credential is malformed.
  ///
  /// The caller has taken the cost out of a ``DerivationBudget``.
  func key(
    for credential: borrowing VaultCredential, environment: VaultEnvironment
  ) throws(SecretError) -> SlotKey
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
    let schemes = kinds.compactMap { $0 as? any KeySlotScheme.Type }
    guard let scheme = schemes.first(where: { $0.kind == credential.kind }) else {
      throw SecretError(
        .invalidKey, "No kind of key slot fits a \(credential.kind).", advice: "Use a key or a passphrase.")
    }
    let parameters = try scheme.new(for: credential, options: options, environment.randomness)
    if let cost = parameters.cost { try DerivationBudget.requireRoom(for: cost, beside: others, options) }
    let key = try parameters.key(for: credential, environment: environment)
    let header = KeySlot.header(
      id: environment.randomness.bytes16(), parameters: parameters,
      created: Timestamp.milliseconds(environment.now()), label: label)
    return try key.wrap(keys.master, vault: vault, slotHeader: header, randomness: environment.randomness)
  }
}
