public import CofferCore
internal import CofferVaultFormat

extension VaultCredential.Kind {
  /// A passphrase.
  public static let passphrase = VaultCredential.Kind("passphrase")
}

extension VaultCredential {
  /// A passphrase of 1 byte to 1 MiB, which Argon2id stretches. It may contain any bytes.
  public static func passphrase(_ passphrase: consuming SecretBytes) -> VaultCredential {
    VaultCredential(.passphrase, passphrase)
  }
}

/// The slot of a passphrase, which Argon2id stretches to the slot's secret.
extension PassphraseParameters: SecretSlotScheme {
  static var kind: VaultCredential.Kind { .passphrase }
  var cost: VaultKeySlot.Cost? { VaultKeySlot.Cost(memory: Int(memory) * 1024, passes: Int(passes)) }

  /// A longer passphrase is a mistake, such as a wrong file.
  private static let maximumLength = 1 << 20
  /// The least memory that Argon2id accepts, in bytes.
  private static let minimumMemory = 8192

  static func new(
    for credential: borrowing VaultCredential, options: VaultOptions, _ randomness: any Randomness
  ) throws(SecretError) -> PassphraseParameters {
    guard (1...maximumLength).contains(credential.secret.count) else {
      throw SecretError(
        .invalidKey, "The passphrase is \(credential.secret.count) bytes long.",
        advice: "Use 1 to \(maximumLength) bytes, and more than a few.")
    }
    guard options.passphrasePasses >= 1, options.passphraseMemory >= minimumMemory else {
      throw SecretError(
        .configuration, "The cost for new passphrases is below the minimum of Argon2id.",
        advice: "Use 1 or more passes, and \(minimumMemory) or more bytes of memory.")
    }
    return PassphraseParameters(
      passes: UInt32(clamping: options.passphrasePasses),
      memory: UInt32(clamping: options.passphraseMemory / 1024), salt: randomness.array(16))
  }

  /// Throws `.io` if the memory cannot be allocated or if the kernel would kill the process for it.
  func key(
    for credential: borrowing VaultCredential, environment: VaultEnvironment
  ) throws(SecretError) -> SlotKey? {
    let bytes = Int(memory) * 1024
    let left = environment.memoryLeft()
    guard bytes <= left ?? .max,
      let secret = Sodium.stretch(credential.secret, salt: salt, passes: Int(passes), memory: bytes)
    else {
      let available = left.map { ", and \($0 >> 20) MiB are left" } ?? ""
      throw SecretError(
        .io,
        "There is not enough memory to stretch the passphrase: it requires \(bytes >> 20) MiB\(available).",
        advice: "Free some or raise the limit, or open the vault with a key file.")
    }
    return SlotKey(secret)
  }
}
