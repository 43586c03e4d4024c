import CofferCore
import CofferVault

/// A change that another writer makes during a change.
final class CrashInterruption {
  enum Answer { case yes, no, perhaps }
  let change: CrashChange
  private let vault: VaultBackend
  private var outcome: Result<Void, any Error>?

  init(change: CrashChange, vault: VaultBackend) {
    (self.change, self.vault) = (change, vault)
  }

  func run() { outcome = Result { try change.run(vault) } }

  /// Whether the change is in the vault. It may have come too late, and it may have been refused.
  func counts(isPowerOn: Bool) throws -> Answer {
    do {
      guard let outcome else { return .no }
      try outcome.get()
      return .yes
    } catch let error as SecretError where error.code == .timedOut {
      return .no
    } catch {
      if isPowerOn { throw error }
      return .perhaps
    }
  }
}
