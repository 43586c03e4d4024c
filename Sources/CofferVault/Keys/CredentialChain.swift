package import CofferCore
internal import CofferVaultFormat

/// How a call may unlock the vault if the keys that opened it last do not open it any more.
package enum Unlocking: Sendable {
  /// Every source of credentials is asked.
  case withPrompts
  /// Sources that may show a prompt are not asked.
  case withoutPrompts
  /// The call does not unlock the vault.
  case never
}

/// The credential sources of a vault in their order, with the limits that apply to them.
package struct CredentialChain: Sendable {
  let sources: [VaultCredentialSource]
  let options: VaultOptions
  let environment: VaultEnvironment

  package init(_ sources: [VaultCredentialSource], options: VaultOptions, environment: VaultEnvironment) {
    (self.sources, self.options, self.environment) = (sources, options, environment)
  }

  /// What a search opens.
  enum Scope {
    /// The vault. The search ends when its keys are known.
    case vault
    /// Every slot.
    case slots
    /// Every slot, but sources that may show a prompt are asked only as long as nothing has opened the vault.
    case slotsWithoutFurtherPrompts
  }

  /// Tries a credential on a slot. Returns `nil` if it does not fit or does not open the slot, and throws
  /// `.costLimitExceeded` before a derivation that exceeds what is left of `budget`.
  private func key(
    of slot: KeySlot, with credential: VaultCredential, _ budget: inout DerivationBudget
  ) throws(SecretError) -> SlotKey? {
    guard let parameters = slot.parameters, parameters.kind.credentialKind == credential.kind else { return nil }
    if let cost = parameters.cost, !budget.spend(cost) {
      throw SecretError(
        .costLimitExceeded,
        "The passphrases of this vault cost more than the limit permits, one of them "
          + "\(cost.memory >> 20) MiB of memory and \(cost.passes) passes.",
        advice: "Open the vault with a key file. If you did not choose that cost, do not trust the file.")
    }
    return try parameters.key(for: credential, environment: environment)
  }

  /// Asks each of `sources` in order and tries its credential on each slot of `file` that is not open yet, and adds
  /// what it opens to `opened`.
  ///
  /// A slot is passed over if its cost exceeds the credential's budget, or if libsodium is too old for it. Any other
  /// error ends the search, with one exception: if every slot is to be opened, the error of a source without a prompt,
  /// such as a lost key file, only leaves its slots closed.
  func open(
    _ opened: inout OpenedKeySlots, of file: VaultFile, with sources: [VaultCredentialSource],
    _ unlocking: Unlocking, _ scope: Scope
  ) throws(SecretError) {
    let description = file.description
    for source in sources {
      if scope == .vault && opened.vaultKeys != nil { return }
      if source.mayPrompt {
        if scope == .slotsWithoutFurtherPrompts && opened.vaultKeys != nil { continue }
        if unlocking != .withPrompts {
          opened.leftOutPrompt = true
          continue
        }
      }
      for failures in 0..<source.attempts {
        let credential: VaultCredential?
        do throws(SecretError) {
          credential = try source.credential(for: description, after: failures)
        } catch {
          if scope == .vault || source.mayPrompt { throw error }
          opened.failure = opened.failure ?? error
          break
        }
        guard let credential else { break }
        if failures == 0 && credential.kind != .masterKey { opened.tried.append(source.name) }
        try add(credential, &opened, of: file, scope)
        if opened.vaultKeys != nil || !opened.refusals.isEmpty { break }
      }
    }
  }

  /// Tries a credential on each slot that is not open yet, and adds the slots that it opens.
  private func add(
    _ credential: VaultCredential, _ opened: inout OpenedKeySlots, of file: VaultFile, _ scope: Scope
  ) throws(SecretError) {
    if credential.kind == .masterKey {
      return try opened.add(master: credential.secret, of: file, environment.randomness)
    }
    var budget = DerivationBudget(options)
    for slot in file.header.slots where opened[slot] == nil {
      if scope == .vault && opened.vaultKeys != nil { return }
      do throws(SecretError) {
        guard let key = try key(of: slot, with: credential, &budget) else { continue }
        try opened.add(key, of: slot, in: file, environment.randomness)
      } catch {
        guard [.costLimitExceeded, .unsupported].contains(error.code) else { throw error }
        opened.refusals[slot.id] = error
      }
    }
  }

  /// Returns the slot that `credential` opens or whose recipient it is, or `nil` if there is none within its budget.
  /// The slot `exception` is not tried.
  func slot(
    openedBy credential: VaultCredential, of file: VaultFile, except exception: KeySlot?
  ) throws(SecretError) -> KeySlot? {
    var budget = DerivationBudget(options)
    for slot in file.header.slots where slot.id != exception?.id {
      if let recipient = credential.recipient, slot.recipient == recipient { return slot }
      do throws(SecretError) {
        guard let key = try key(of: slot, with: credential, &budget) else { continue }
        if try key.unwrap(slot, vault: file.header.vaultID) != nil { return slot }
      } catch {
        guard [.costLimitExceeded, .unsupported].contains(error.code) else { throw error }
      }
    }
    return nil
  }

  // MARK: Unlocking

  /// Returns the keys of the vault from the first source whose credential opens a slot. Throws what
  /// ``requireKeys(_:of:)`` and a source throw.
  package func unlock(_ file: VaultFile, _ unlocking: Unlocking = .withPrompts) throws(SecretError)
    -> DerivedKeys
  {
    if unlocking == .never { throw SecretError(.locked, "The vault at \(file.path) is not open.") }
    var opened = OpenedKeySlots()
    try open(&opened, of: file, with: sources, unlocking, .vault)
    return try requireKeys(opened, of: file)
  }

  /// Returns the keys of the vault that a search has found.
  ///
  /// Throws `.locked` if no source returned a credential, or if a source was not asked because it may show a prompt;
  /// `.wrongKey` if no credential opens the vault, and `.costLimitExceeded` if a slot was passed over as well.
  func requireKeys(_ opened: OpenedKeySlots, of file: VaultFile) throws(SecretError) -> DerivedKeys {
    if let keys = opened.vaultKeys { return keys }
    if let failure = opened.failure { throw failure }
    if opened.leftOutPrompt {
      throw SecretError(
        .locked, "The vault at \(file.path) is locked, and no prompt may be shown now.",
        advice: options.lockedAdvice)
    }
    for slot in file.header.slots.reversed() { if let refusal = opened.refusals[slot.id] { throw refusal } }
    if opened.tried.isEmpty {
      throw SecretError(
        .locked, "The vault at \(file.path) is locked, and no key for it was found.",
        advice: options.lockedAdvice)
    }
    throw SecretError(
      .wrongKey, "No key opens the vault at \(file.path); tried: \(opened.tried.joined(separator: ", ")).",
      advice: "Check that the key or passphrase is the one for this vault; a damaged header looks the same.")
  }
}
