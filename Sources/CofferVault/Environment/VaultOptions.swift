/// What opening a vault may cost, and how long its calls may wait.
public struct VaultOptions: Sendable {
  /// The longest wait for another process or thread before a call throws `.timedOut`: 10 seconds.
  public var lockTimeout: Duration = .seconds(10)
  /// The largest memory in bytes that the derivation of a passphrase may use: 1 GiB. Raise it to open a vault that was
  /// made with more.
  public var maximumPassphraseMemory: Int = 1 << 30
  /// The largest work that a passphrase may cause: the memory in bytes times the passes, summed over the key slots that
  /// the passphrase is tried on. 4 GiB, which takes about three seconds: as much as one derivation with libsodium's
  /// `crypto_pwhash_MEMLIMIT_SENSITIVE` and 4 passes, or more than 16 slots of the default cost.
  package var maximumPassphraseWork: Int = 4 << 30
  /// The memory in bytes for passphrases that are set from now on, a multiple of 1024: 64 MiB, which is libsodium's
  /// `crypto_pwhash_MEMLIMIT_INTERACTIVE`.
  public var passphraseMemory: Int = 64 << 20
  /// The number of Argon2id passes for passphrases that are set from now on: 3, which RFC 9106 recommends for 64 MiB.
  package var passphrasePasses: Int = 3

  /// A private directory in which the state of each vault is recorded between runs, so that another vault or an older
  /// copy in its place is noticed. If the directory does not exist, nothing is recorded; if it cannot be used, calls
  /// throw `.unverifiable`. With `nil`, the default, only an object that has seen the newer state notices an older
  /// copy. `BackendConfiguration` sets it for its vaults.
  public var knownVaultsDirectory: String?

  /// The policy that the first use of a vault at a path records. Later only ``VaultBackend/trust(_:pin:onlyHere:)``
  /// changes it. `nil`: strict, unless a configuration chooses a policy by the vault's place.
  package var firstUsePolicy: TrustPolicy?

  /// The texts of pins, as ``VaultBackend/pin()`` returns them. A vault that is opened must match one of them; if there
  /// are none, every vault may be opened. A new vault is not compared. A pin protects only if it comes by another way
  /// than the vault.
  public var pins: [String] = []

  /// Whether the vault is neither compared nor recorded, because a person reads values out of a backup. A removed key
  /// may have changed the backup.
  package var isBackup = false
  /// Whether an older state is accepted at a path where no vault was seen. Nothing is recorded of it.
  package var readsBackups = false
  /// Whether nobody is told of notices. A state that is told once is then left to the next reader.
  package var tellsNobody = false

  /// Whether the file is in a work tree of version control, which makes it readable for everybody at each checkout.
  package var isInWorkTree = false

  /// How long a read may use a state of a vault on an engine without asking the engine for a newer one: 0 by default. A
  /// change is always made to the newest state.
  public var maximumAge = Duration.zero
  /// Whether an engine is not asked at all. Reads then use the state that this machine has seen last, and changes throw
  /// `.unavailable`.
  public var isOffline = false
  /// How long a read may use a state that this process itself was told, like ``maximumAge``. The tool asks once for the
  /// several reads of a command.
  package var maximumAgeInProcess = Duration.zero
  /// A private directory in which sealed copies of vaults on engines are kept, so that a read need not get the whole
  /// vault. What is erased elsewhere stays in a copy until the next read. With `nil`, none is kept.
  package var copiesDirectory: String?

  /// What to do if no source has a credential.
  package var lockedAdvice = "Give the backend a credential source that has the vault's key or passphrase."

  /// The default limits and costs.
  public init() {}
}
