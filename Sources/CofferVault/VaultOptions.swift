internal import CofferSystem

/// What a vault may cost to open, and how long it may wait.
public struct VaultOptions: Sendable {
  /// Seconds to wait for another process's or thread's change before `.timedOut`.
  public var lockTimeout: Double = 10
  /// The most memory a passphrase may take to stretch, in bytes: 1 GiB. Raise it to open a vault that was
  /// made with more.
  public var maximumPassphraseMemory: Int = 1 << 30
  /// The most Argon2id passes a passphrase may take.
  public var maximumPassphrasePasses: Int = 16
  /// The cost of passphrases set from now on: memory in bytes, a multiple of 1024, and passes. The default
  /// is libsodium's interactive memory and the passes that RFC 9106 names for 64 MiB.
  public var passphraseMemory: Int = 64 << 20
  public var passphrasePasses: Int = 3

  /// A directory in which the newest state seen of each vault is remembered between runs, so that an older
  /// copy in its place is noticed. It must be there. `nil`: only this process's own memory notices.
  public var watermarkDirectory: String?

  /// Bytes of memory that can be had before the system kills the process for it. `nil`: as many as there are.
  package var memoryLeft: @Sendable () -> Int? = { ControlGroups().memoryLeft() }

  public init() {}
}
