package import CofferCore
internal import CofferVaultFormat

/// The credential sources of a vault in their order, with the limits that apply to them.
package struct CredentialChain: Sendable {
  private let sources: [any VaultCredentialSource]
  let options: VaultOptions
  let environment: VaultEnvironment

  package init(
    _ sources: [any VaultCredentialSource], options: VaultOptions, environment: VaultEnvironment
  ) {
    self.sources = sources
    self.options = options
    self.environment = environment
  }

  /// The same chain with further sources at its end.
  func appending(_ others: [any VaultCredentialSource]) -> CredentialChain {
    CredentialChain(sources + others, options: options, environment: environment)
  }

  /// What a search did not open.
  struct Misses {
    /// The names of the sources that returned a key or a passphrase.
    var tried: [String] = []
    /// The slots that were passed over because of their cost, with the errors.
    var refusals: [(slot: Bytes16, error: SecretError)] = []
    /// Whether a source was not asked because it might have shown a prompt.
    var wasQuiet = false
  }

  /// A slot's key as a credential gave it, and the master key that it opened.
  private struct Opened: ~Copyable {
    let key: SlotKey
    let master: SecretBytes
  }

  /// Tries a credential on a slot. Returns `nil` if it does not fit or does not open the slot, and throws
  /// `.costLimitExceeded` before a derivation that exceeds what is left of `budget`.
  private func tryOpening(
    _ slot: KeySlot, of file: VaultFile, with credential: borrowing VaultCredential,
    _ budget: inout DerivationBudget
  ) throws(SecretError) -> Opened? {
    guard let scheme = slot.scheme, type(of: scheme).kind == credential.kind else { return nil }
    if let cost = scheme.cost, !budget.spend(cost) { throw .overBudget(cost) }
    guard let key = try scheme.key(for: credential, environment: environment),
      let master = try key.unwrap(slot, vault: file.header.vaultID)
    else { return nil }
    return Opened(key: key, master: master)
  }

  /// Asks each source in order and tries its credential on each of `slots` that no credential has opened yet.
  ///
  /// `use` is called for each slot that is opened, with its key and its master key, and `useMasterKey` for
  /// each credential that is a master key. Either ends the search by returning `false`. A slot whose cost
  /// exceeds the credential's budget is passed over. Any other error ends the search. Without `mayPrompt`, sources that
  /// may show a prompt are not asked.
  @discardableResult
  func open(
    _ slots: [KeySlot], of file: VaultFile, mayPrompt: Bool = true,
    useMasterKey: (borrowing SecretBytes) throws(SecretError) -> Bool = { _ in true },
    use: (KeySlot, borrowing SlotKey, borrowing SecretBytes) throws(SecretError) -> Bool
  ) throws(SecretError) -> Misses {
    let description = file.description
    var misses = Misses()
    var opened: Set<Bytes16> = []
    for source in sources {
      if source.mayPrompt && !mayPrompt {
        misses.wasQuiet = true
        continue
      }
      guard let credential = try source.credential(for: description) else { continue }
      if credential.kind == .masterKey {
        guard try useMasterKey(credential.secret) else { return misses }
        continue
      }
      misses.tried.append(source.name)
      var budget = DerivationBudget(options)
      for slot in slots where !opened.contains(slot.id) {
        do throws(SecretError) {
          guard let found = try tryOpening(slot, of: file, with: credential, &budget) else { continue }
          opened.insert(slot.id)
          guard try use(slot, found.key, found.master) else { return misses }
        } catch {
          guard error.code == .costLimitExceeded else { throw error }
          misses.refusals.append((slot.id, error))
        }
      }
    }
    return misses
  }

  /// Returns the slot that `credential` opens, or `nil` if it opens none within its budget.
  func slot(
    openedBy credential: borrowing VaultCredential, of file: VaultFile
  ) throws(SecretError) -> KeySlot? {
    var budget = DerivationBudget(options)
    for slot in file.header.slots {
      do throws(SecretError) {
        if try tryOpening(slot, of: file, with: credential, &budget) != nil { return slot }
      } catch {
        guard error.code == .costLimitExceeded else { throw error }
      }
    }
    return nil
  }

  // MARK: Unlocking

  /// Returns the keys of the vault from the first source whose credential opens a slot.
  ///
  /// Throws `.locked` if no source returns a credential, or if a source was not asked because of `mayPrompt`; `.wrongKey`
  /// if no credential opens the vault, `.costLimitExceeded` if a slot was passed over as well, and what a source throws.
  package func unlock(_ file: VaultFile, mayPrompt: Bool = true) throws(SecretError) -> DerivedKeys {
    var keys: DerivedKeys?
    let misses = try open(
      file.header.slots, of: file, mayPrompt: mayPrompt,
      useMasterKey: { master throws(SecretError) in
        guard master.count == DerivedKeys.masterLength else {
          throw SecretError(
            .invalidKey,
            "The master key is \(master.count) bytes long instead of \(DerivedKeys.masterLength).",
            advice: "Use a master key that the vault returned.")
        }
        let candidate = DerivedKeys(master: master.copy(), randomness: environment.randomness)
        // A master key that was kept is obsolete once the vault has another.
        guard candidate.isCommitted(to: file.header) else { return true }
        try candidate.authenticate(file.header)
        keys = candidate
        return false
      },
      use: { _, _, master throws(SecretError) in
        let candidate = DerivedKeys(master: master.copy(), randomness: environment.randomness)
        try candidate.authenticate(file.header)
        keys = candidate
        return false
      })
    if let keys { return keys }
    if misses.wasQuiet {
      throw SecretError(
        .locked, "The vault at \(file.path) is locked, and no prompt may be shown now.",
        advice: options.lockedAdvice)
    }
    if let refusal = misses.refusals.last { throw refusal.error }
    if misses.tried.isEmpty {
      throw SecretError(
        .locked, "The vault at \(file.path) is locked, and no key for it was found.",
        advice: options.lockedAdvice)
    }
    throw SecretError(
      .wrongKey, "No key opens the vault at \(file.path); tried: \(misses.tried.joined(separator: ", ")).",
      advice: "Check that the key or passphrase is the one for this vault; a damaged header looks the same.")
  }
}
