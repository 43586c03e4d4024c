internal import CofferCore
internal import CofferVaultFormat

extension KeySlotParameters.Kind {
  /// The kind of credential that opens the slot.
  var credentialKind: VaultCredential.Kind {
    switch self {
    case .passphrase: .passphrase
    case .key: .key
    case .x25519, .hybrid: .identity
    }
  }
}

/// Which credentials fit a key slot, and how a credential becomes the key that wraps the master key in it.
extension KeySlotParameters {
  /// The cost of ``key(for:environment:)``, or `nil` if it is negligible.
  var cost: VaultKeySlot.Cost? {
    guard case .passphrase(let passes, let memory, _) = self else { return nil }
    return VaultKeySlot.Cost(memory: Int(memory) * 1024, passes: Int(passes))
  }

  /// Returns the slot's key, derived from `credential`, or `nil` if the slot is not for `credential`, which must be of
  /// the slot's kind. The key is the right one only if it unwraps the slot.
  ///
  /// Throws `.invalidKey` if the credential is malformed, `.tampered` if a recipient's share is unusable,
  /// `.unsupported` for a hybrid recipient if libsodium is too old, and `.io` if the memory for a passphrase cannot be
  /// allocated or if the kernel would kill the process for it. The caller must first take the cost out of a
  /// ``DerivationBudget``.
  func key(for credential: VaultCredential, environment: VaultEnvironment) throws(SecretError) -> SlotKey? {
    switch self {
    case .key:
      try VaultKey.requireBytes(credential.secret)
      return SlotKey(credential.secret)
    case .passphrase(let passes, let memory, let salt):
      let (bytes, left) = (Int(memory) * 1024, environment.memoryLeft())
      guard bytes <= left ?? .max,
        let secret = Sodium.stretch(credential.secret, salt: salt, passes: Int(passes), memory: bytes)
      else {
        let available = left.map { ", and \($0 >> 20) MiB are left" } ?? ""
        throw SecretError(
          .io, "There is not enough memory to stretch the passphrase: it requires \(bytes >> 20) MiB\(available).",
          advice: "Free some or raise the limit, or open the vault with a key file.")
      }
      return SlotKey(secret)
    case .recipient(let recipient, let share, let isHybrid):
      guard let identity = credential.identities.first(where: { $0.recipient?.key[...] == recipient }) else {
        // Without X-Wing it is not known which recipient a post-quantum identity has.
        if isHybrid && credential.identities.contains(where: { $0.recipient == nil }) { throw .noXWing }
        return nil
      }
      let secret =
        isHybrid
        ? Sodium.decapsulate(Array(share), identity.secret)
        : Sodium.sharedSecret(identity.secret, Array(share))
      guard let secret else {
        let flaw = isHybrid ? "an unusable share" : "a share of low order"
        throw .tampered("the key slot of a recipient has \(flaw)")
      }
      return SlotKey(secret)
    }
  }

  /// A longer passphrase is a mistake, such as a wrong file.
  private static let maximumPassphraseLength = 1 << 20
  /// The least memory that Argon2id accepts, in bytes.
  private static let minimumMemory = 8192

  /// Returns the parameters of a new slot for `credential`, a key or a passphrase. Throws `.invalidKey` for another
  /// kind and for a malformed credential, and `.configuration` if `options` set a cost below the minimum.
  fileprivate static func new(
    for credential: VaultCredential, _ options: VaultOptions, _ randomness: any Randomness
  ) throws(SecretError) -> KeySlotParameters {
    if credential.kind == .key { return .key(salt: randomness.array(16)) }
    guard credential.kind == .passphrase else {
      throw SecretError(
        .invalidKey, "No kind of key slot fits a \(credential.kind).",
        advice: "Use a key, a passphrase or a recipient.")
    }
    guard (1...maximumPassphraseLength).contains(credential.secret.count) else {
      throw SecretError(
        .invalidKey, "The passphrase is \(credential.secret.count) bytes long.",
        advice: "Use 1 to \(maximumPassphraseLength) bytes, and more than a few.")
    }
    guard options.passphrasePasses >= 1, options.passphraseMemory >= minimumMemory else {
      throw SecretError(
        .configuration, "The cost for new passphrases is below the minimum of Argon2id.",
        advice: "Use 1 or more passes, and \(minimumMemory) or more bytes of memory.")
    }
    return .passphrase(
      passes: UInt32(clamping: options.passphrasePasses),
      memory: UInt32(clamping: options.passphraseMemory / 1024), salt: randomness.array(16))
  }

  /// Returns the parameters and the key of a new slot for `recipient`. This needs no secret, so neither does a change
  /// of the master key. Throws `.invalidKey` for an unusable public key, and `.unsupported` for a hybrid recipient if
  /// libsodium is too old.
  fileprivate static func new(
    for recipient: VaultRecipient, _ randomness: any Randomness
  ) throws(SecretError) -> (KeySlotParameters, SlotKey) {
    let secret: SecretBytes?
    var share: [UInt8] = []
    if recipient.isPostQuantum {
      guard Sodium.hasXWing else { throw .noXWing }
      secret = Sodium.encapsulate(to: recipient.key, &share)
    } else {
      let ephemeral = SecretBytes(count: 32) { randomness.fill($0) }
      share = Sodium.publicKey(of: ephemeral)
      secret = Sodium.sharedSecret(ephemeral, recipient.key)
    }
    guard let secret else {
      throw SecretError(
        .invalidKey, "The recipient is no usable public key.", advice: "Take it from its identity again.")
    }
    return (.recipient(recipient.key[...], share: share[...], isHybrid: recipient.isPostQuantum), SlotKey(secret))
  }
}

extension KeySlot {
  /// The recipient of the slot, or `nil` if it has none.
  var recipient: VaultRecipient? {
    guard case .recipient(let key, _, let isHybrid) = parameters else { return nil }
    return VaultRecipient(key: Array(key), isPostQuantum: isHybrid)
  }

  /// Makes a slot in which `credential` wraps the master key of `keys`, for a vault that has the slots `others`.
  ///
  /// Throws `.invalidKey` if the credential fits no kind of slot or is malformed; `.invalidMetadata` for a label that
  /// is too long or contains a NUL; `.configuration` if `options` set a cost below the minimum; `.unsupported` for a
  /// hybrid recipient if libsodium is too old; and `.tooLarge` if the slots together would cost more than the limits of
  /// `options`.
  static func make(
    _ credential: VaultCredential, for keys: DerivedKeys, vault: Bytes16, label: String,
    beside others: [KeySlot] = [], options: VaultOptions, environment: VaultEnvironment
  ) throws(SecretError) -> KeySlot {
    guard label.utf8.count <= Layout.maximumSlotLabelLength, !label.utf8.contains(0) else {
      throw SecretError(
        .invalidMetadata,
        "A key slot's label is longer than \(Layout.maximumSlotLabelLength) bytes or contains a NUL.",
        advice: "Shorten it.")
    }
    let parameters: KeySlotParameters
    let key: SlotKey?
    if let recipient = credential.recipient {
      (parameters, key) = try KeySlotParameters.new(for: recipient, environment.randomness)
    } else {
      parameters = try .new(for: credential, options, environment.randomness)
      if let cost = parameters.cost { try DerivationBudget.requireRoom(for: cost, beside: others, options) }
      key = try parameters.key(for: credential, environment: environment)
    }
    guard let key else { throw SecretError(.invalidKey, "The credential does not fit its own slot.") }
    let header = KeySlot.header(
      id: environment.randomness.bytes16(), parameters: parameters,
      created: Timestamp.milliseconds(environment.now()), label: label)
    return try key.wrap(keys.master, vault: vault, slotHeader: header, randomness: environment.randomness)
  }

  /// Makes slots for those of `recipients` that have none among `others`, like the method above. Throws `.tooLarge` if
  /// there is no room for them.
  static func make(
    for recipients: [VaultRecipient], beside others: [KeySlot], _ keys: DerivedKeys, vault: Bytes16,
    label: String, options: VaultOptions, environment: VaultEnvironment
  ) throws(SecretError) -> [KeySlot] {
    var slots: [KeySlot] = []
    for recipient in recipients where !(others + slots).contains(where: { $0.recipient == recipient }) {
      try requireRoom(for: others.count + slots.count + 1)
      slots.append(
        try make(
          .recipient(recipient), for: keys, vault: vault, label: label, options: options,
          environment: environment))
    }
    return slots
  }

  /// Returns the slot with the master key of `keys`. `key` is the slot's key, which the slot of a recipient does not
  /// need. Returns `nil` if another slot has none. Throws `.unsupported` for a hybrid recipient if libsodium is too
  /// old.
  func rewrapped(
    _ key: SlotKey?, for keys: DerivedKeys, vault: Bytes16, _ environment: VaultEnvironment
  ) throws(SecretError) -> KeySlot? {
    var (key, header) = (key, header)
    if let recipient {
      let (parameters, new) = try KeySlotParameters.new(for: recipient, environment.randomness)
      header = KeySlot.header(id: id, parameters: parameters, created: created, label: label)
      key = new
    }
    guard let key else { return nil }
    return try key.wrap(keys.master, vault: vault, slotHeader: header, randomness: environment.randomness)
  }

  /// Throws `.tooLarge` if a vault cannot have `count` slots.
  static func requireRoom(for count: Int) throws(SecretError) {
    if count > Layout.maximumKeySlots {
      throw SecretError(
        .tooLarge, "A vault has at most \(Layout.maximumKeySlots) key slots, and this would be number \(count).",
        advice: "Remove one first.")
    }
  }
}
