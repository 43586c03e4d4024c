internal import CofferCore
internal import CofferVaultFormat

/// A kind of key slot: which credentials fit it, and how a credential becomes the key that wraps the master
/// key.
///
/// A new kind is its parameters in `CofferVaultFormat`, a conformance of them to this protocol, and an entry
/// in ``KeySlot/kinds`` and in ``KeySlot/scheme``.
protocol KeySlotScheme: KeySlotParameters {
  /// The kind of credential that opens the slot.
  static var kind: VaultCredential.Kind { get }

  /// The cost of ``key(for:environment:)``, or `nil` if it is negligible.
  var cost: VaultKeySlot.Cost? { get }

  /// Returns the slot's key as `credential`, which is of this kind, gives it, or `nil` if the slot is not for it. The key is
  /// the right one only if it unwraps the slot. Throws `.invalidKey` if the credential is malformed.
  ///
  /// The caller has taken the cost out of a ``DerivationBudget``.
  func key(
    for credential: borrowing VaultCredential, environment: VaultEnvironment
  ) throws(SecretError) -> SlotKey?

  /// The error for a slot that its key does not unwrap, or `nil` if the credential may be another slot's.
  func refusal() -> SecretError?
}

/// A kind of key slot for which a new slot needs the credential that opens it.
protocol SecretSlotScheme: KeySlotScheme {
  /// Returns the parameters of a new slot for `credential`, which is of this kind. Throws `.invalidKey` if it is malformed,
  /// and `.configuration` if `options` set a cost below the minimum.
  static func new(
    for credential: borrowing VaultCredential, options: VaultOptions, _ randomness: any Randomness
  ) throws(SecretError) -> Self
}

extension KeySlotScheme {
  func refusal() -> SecretError? { nil }
}

extension KeySlot {
  /// `nil` if the slot is of an unknown kind.
  var scheme: (any KeySlotScheme)? {
    switch parameters {
    case let parameters as KeyParameters: parameters
    case let parameters as PassphraseParameters: parameters
    case let parameters as X25519Parameters: parameters
    case let parameters as HybridParameters: parameters
    default: nil
    }
  }

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
    let parameters: any KeySlotParameters
    let key: SlotKey
    if let recipient = credential.recipient {
      (parameters, key) = try recipient.newSlot(environment.randomness)
    } else {
      (parameters, key) = try new(credential, beside: others, options, environment)
    }
    return try wrap(
      keys, key, parameters, vault: vault, id: environment.randomness.bytes16(),
      created: Timestamp.milliseconds(environment.now()), label: label, environment)
  }

  /// Returns the parameters and the key of a new slot for a key or a passphrase.
  private static func new(
    _ credential: borrowing VaultCredential, beside others: [KeySlot], _ options: VaultOptions,
    _ environment: VaultEnvironment
  ) throws(SecretError) -> (any KeySlotParameters, SlotKey) {
    let schemes = kinds.compactMap { $0 as? any SecretSlotScheme.Type }
    guard let scheme = schemes.first(where: { $0.kind == credential.kind }) else {
      throw SecretError(
        .invalidKey, "No kind of key slot fits a \(credential.kind).",
        advice: "Use a key, a passphrase or a recipient.")
    }
    let parameters = try scheme.new(for: credential, options: options, environment.randomness)
    if let cost = parameters.cost { try DerivationBudget.requireRoom(for: cost, beside: others, options) }
    guard let key = try parameters.key(for: credential, environment: environment) else {
      throw SecretError(.invalidKey, "The credential does not fit its own slot.")
    }
    return (parameters, key)
  }

  private static func wrap(
    _ keys: DerivedKeys, _ key: SlotKey, _ parameters: some KeySlotParameters, vault: Bytes16, id: Bytes16,
    created: Int64, label: String, _ environment: VaultEnvironment
  ) throws(SecretError) -> KeySlot {
    let header = KeySlot.header(id: id, parameters: parameters, created: created, label: label)
    return try key.wrap(keys.master, vault: vault, slotHeader: header, randomness: environment.randomness)
  }

  /// Throws `.tooLarge` if a vault cannot have `count` slots.
  static func requireRoom(for count: Int) throws(SecretError) {
    if count > Layout.maximumKeySlots {
      throw SecretError(
        .tooLarge,
        "A vault has at most \(Layout.maximumKeySlots) key slots, and this would be number \(count).",
        advice: "Remove one first.")
    }
  }

  /// The recipient of the slot, or `nil` if it has none. Compared by type, because a search for a conformance takes longer.
  var recipient: VaultRecipient? {
    switch parameters {
    case let parameters as X25519Parameters: VaultRecipient(parameters)
    case let parameters as HybridParameters: VaultRecipient(parameters)
    default: nil
    }
  }

  /// The slot with the master key of `keys`. `key` is that of the slot; the slot of a recipient needs none. Returns `nil`
  /// if another slot has none. Throws `.unsupported` for a recipient of another library.
  func rewrapped(
    _ key: SlotKey?, for keys: DerivedKeys, vault: Bytes16, _ environment: VaultEnvironment
  ) throws(SecretError) -> KeySlot? {
    if let recipient {
      let (parameters, key) = try recipient.newSlot(environment.randomness)
      return try Self.wrap(
        keys, key, parameters, vault: vault, id: id, created: created, label: label, environment)
    }
    guard let key else { return nil }
    return try key.wrap(keys.master, vault: vault, slotHeader: header, randomness: environment.randomness)
  }
}
