public import CofferCore
internal import CofferVaultFormat

extension VaultCredential.Kind {
  /// Identities, which open the slots of their recipients.
  public static let identity = VaultCredential.Kind("identity")
  /// A recipient. It makes a key slot and opens none.
  public static let recipient = VaultCredential.Kind("recipient")
}

extension VaultCredential {
  /// One or more identities. The first slot of one of their recipients opens the vault.
  ///
  /// Anyone can make a vault for a recipient. A vault that an identity alone opened is therefore refused with `.untrusted`,
  /// until ``VaultOptions/pins`` name it, a record says that it was used at its path, or ``VaultBackend/trust(_:)`` accepts
  /// it.
  public static func identities(_ identities: [VaultIdentity]) -> VaultCredential {
    var credential = VaultCredential(.identity, SecretBytes(copying: ""))
    credential.identities = identities
    return credential
  }

  /// A recipient, for which a key slot is to be made.
  public static func recipient(_ recipient: VaultRecipient) -> VaultCredential {
    var credential = VaultCredential(.recipient, SecretBytes(copying: ""))
    credential.recipient = recipient
    return credential
  }

  /// The recipient, or those of the identities. Throws `.unsupported` for a post-quantum identity if libsodium is too old.
  package func recipients() throws(SecretError) -> [VaultRecipient] {
    if let recipient { return [recipient] }
    var recipients: [VaultRecipient] = []
    for identity in identities {
      guard let recipient = identity.recipient else { throw .noXWing }
      recipients.append(recipient)
    }
    return recipients
  }

  /// Returns the credential whose text is all of `text`: that of a key, or of identities, which begins with `#` or
  /// `AGE-SECRET-KEY-`. Throws `.invalidKey` for any other text.
  public static func parse(_ text: borrowing SecretBytes) throws(SecretError) -> VaultCredential {
    if VaultIdentity.isText(text) { return .identities(try VaultIdentity.parse(text)) }
    return .key(try VaultKey.parse(text))
  }
}

/// The slot of a recipient. A new one needs no secret, so that a change of the master key does not either.
protocol RecipientScheme: KeySlotScheme, RecipientParameters {
  /// Makes what the slot and its recipient have in common, and the share by which the recipient finds it. Throws
  /// `.invalidKey` for an unusable public key, and `.unsupported`.
  static func makeShare(
    for recipient: [UInt8], _ randomness: any Randomness
  ) throws(SecretError) -> (share: [UInt8], key: SlotKey)

  /// Returns what `identity`, which is that of the recipient, finds with the share. Throws `.tampered`.
  func secret(of identity: borrowing SecretBytes) throws(SecretError) -> SecretBytes
}

extension RecipientScheme {
  static var kind: VaultCredential.Kind { .identity }
  var cost: VaultKeySlot.Cost? { nil }

  func key(
    for credential: borrowing VaultCredential, environment: VaultEnvironment
  ) throws(SecretError) -> SlotKey? {
    let own = VaultRecipient(self)
    if let identity = credential.identities.first(where: { $0.recipient == own }) {
      return SlotKey(try secret(of: identity.secret.bytes))
    }
    // Which recipient the identity has is then not known.
    if own.isPostQuantum && credential.identities.contains(where: { $0.recipient == nil }) { throw .noXWing }
    return nil
  }

  /// Only the slot's own identity has got this far.
  func refusal() -> SecretError? { .tampered("the key slot of a recipient does not open") }

  fileprivate static func new(
    for recipient: VaultRecipient, _ randomness: any Randomness
  ) throws(SecretError) -> (parameters: any RecipientParameters, key: SlotKey) {
    let (share, key) = try makeShare(for: recipient.key, randomness)
    return (Self(recipient: recipient.key, share: share), key)
  }
}

extension VaultRecipient {
  /// The parameters of a new slot, and the slot's key. Throws `.invalidKey` and `.unsupported`.
  func newSlot(
    _ randomness: any Randomness
  ) throws(SecretError) -> (parameters: any RecipientParameters, key: SlotKey) {
    isPostQuantum
      ? try HybridParameters.new(for: self, randomness) : try X25519Parameters.new(for: self, randomness)
  }
}

extension X25519Parameters: RecipientScheme {
  static func makeShare(
    for recipient: [UInt8], _ randomness: any Randomness
  ) throws(SecretError) -> (share: [UInt8], key: SlotKey) {
    let ephemeral = SecretBytes(count: 32) { randomness.fill($0) }
    guard let secret = Sodium.sharedSecret(ephemeral, recipient) else { throw .unusableRecipient }
    return (Sodium.publicKey(of: ephemeral), SlotKey(secret))
  }

  func secret(of identity: borrowing SecretBytes) throws(SecretError) -> SecretBytes {
    guard let secret = Sodium.sharedSecret(identity, share) else {
      throw .tampered("the key slot of a recipient has a share of low order")
    }
    return secret
  }
}

extension HybridParameters: RecipientScheme {
  static func makeShare(
    for recipient: [UInt8], _ randomness: any Randomness
  ) throws(SecretError) -> (share: [UInt8], key: SlotKey) {
    guard Sodium.hasXWing else { throw .noXWing }
    var share: [UInt8] = []
    guard let secret = Sodium.encapsulate(to: recipient, &share) else { throw .unusableRecipient }
    return (share, SlotKey(secret))
  }

  func secret(of identity: borrowing SecretBytes) throws(SecretError) -> SecretBytes {
    guard let secret = Sodium.decapsulate(share, identity) else {
      throw .tampered("the key slot of a recipient has an unusable share")
    }
    return secret
  }
}

extension SecretError {
  fileprivate static var unusableRecipient: SecretError {
    SecretError(
      .invalidKey, "The recipient is no usable public key.", advice: "Take it from its identity again.")
  }
}
