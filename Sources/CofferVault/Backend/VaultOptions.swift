/// What opening a vault may cost, and how long its calls may wait.
public struct VaultOptions: Sendable {
  /// The time to wait for another process's or thread's change before a call throws `.timedOut`: 10 seconds.
  public var lockTimeout: Duration = .seconds(10)
  /// The largest memory in bytes that the derivation of a passphrase may use: 1 GiB. Raise it to open a vault
  /// that was made with more.
  public var maximumPassphraseMemory: Int = 1 << 30
  /// The largest work that a passphrase may cause: the memory in bytes times the passes, in sum over the key slots
  /// that it is tried on. 4 GiB, which takes about three seconds: as much as one derivation with libsodium's
  /// `crypto_pwhash_MEMLIMIT_SENSITIVE` and 4 passes, or more than 16 slots of the default cost.
  public var maximumPassphraseWork: Int = 4 << 30
  /// The memory in bytes for passphrases that are set from now on, a multiple of 1024: 64 MiB, which is
  /// libsodium's `crypto_pwhash_MEMLIMIT_INTERACTIVE`.
  public var passphraseMemory: Int = 64 << 20
  /// The number of Argon2id passes for passphrases that are set from now on: 3, which RFC 9106 recommends for
  /// 64 MiB.
  public var passphrasePasses: Int = 3

  /// A private directory that remembers between runs what was seen of each vault, so that another vault or an
  /// older copy in its place is noticed. If it does not exist, ``VaultCondition/isUnrecorded`` says so; if it
  /// cannot be used, `.unverifiable` is thrown. `nil`: only a process that has seen the newer state notices.
  public var knownVaultsDirectory: String?

  /// How a vault is held to what was seen of it, from its first use at a path on. Later only
  /// ``VaultBackend/trust(_:)`` changes it. `nil`: strict, unless a configuration chooses by the vault's place.
  public var firstUsePolicy: TrustPolicy?

  /// What to do if no source has a credential.
  package var lockedAdvice = "Give the backend a credential source that has the vault's key or passphrase."

  /// The default limits and costs.
  public init() {}
}
