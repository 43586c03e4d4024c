internal import CofferCore
internal import CofferVaultFormat

/// What the derivations of one passphrase may still cost.
///
/// The header says what each derivation costs, and anyone can write a header. Without a bound on their sum, a file of
/// many slots could keep a process busy for minutes before any of it is authenticated.
struct DerivationBudget {
  private let maximumMemory: Int
  /// Bytes times passes.
  private var work: Int

  init(_ options: VaultOptions) {
    (maximumMemory, work) = (options.maximumPassphraseMemory, options.maximumPassphraseWork)
  }

  /// Takes the cost of a derivation out of the budget. Returns `false` and takes nothing if it exceeds what is left.
  mutating func spend(_ cost: VaultKeySlot.Cost) -> Bool {
    guard cost.memory <= maximumMemory, cost.work <= work else { return false }
    work -= cost.work
    return true
  }

  /// Throws `.tooLarge` if a passphrase could not be tried on all of `others` and a slot of the cost `cost` together.
  static func requireRoom(
    for cost: VaultKeySlot.Cost, beside others: [KeySlot], _ options: VaultOptions
  ) throws(SecretError) {
    let costs = [cost] + others.compactMap { $0.parameters?.cost }
    guard hasRoom(for: costs, options) else {
      throw SecretError(
        .tooLarge, "With this passphrase, the vault would cost more to unlock than the limit permits.",
        advice: "Choose a lower cost, remove another passphrase first, or add a key file instead.")
    }
  }

  /// Throws `.tooLarge` if a passphrase could not be tried on all of `slots` together.
  static func requireRoom(for slots: [KeySlot], _ options: VaultOptions) throws(SecretError) {
    guard hasRoom(for: slots.compactMap { $0.parameters?.cost }, options) else {
      throw SecretError(
        .tooLarge, "With the passphrases of both copies, the vault would cost more to unlock than the limit permits.",
        advice: "Take single secrets of the other copy instead: secret copy --from vault:OTHER.")
    }
  }

  private static func hasRoom(for costs: [VaultKeySlot.Cost], _ options: VaultOptions) -> Bool {
    var budget = DerivationBudget(options)
    return costs.allSatisfy { budget.spend($0) }
  }
}
