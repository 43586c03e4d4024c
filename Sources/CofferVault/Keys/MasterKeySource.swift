internal import CofferVaultFormat
package import CofferCore

/// A source that has the vault's master key itself, from an earlier opening: `secret unlock` keeps it in the
/// kernel, so that a passphrase is stretched once and not at each use.
///
/// Not public: what a program keeps should be a credential, which can be taken away again by itself.
package protocol MasterKeySource: VaultCredentialSource {
  /// The master key, or `nil` where none is kept.
  func masterKey(for vault: VaultDescription) throws(SecretError) -> SecretBytes?
}

extension MasterKeySource {
  /// None: a master key fits no key slot.
  package func credential(for vault: VaultDescription) throws(SecretError) -> VaultCredential? { nil }
}

extension VaultBackend {
  /// Opens the vault and lends its id and its master key.
  package func withMasterKey<R>(
    _ body: (_ vaultID: String, _ master: borrowing SecretBytes) throws(SecretError) -> R
  ) throws(SecretError) -> R {
    try withSession { session throws(SecretError) in
      try session.read { vault throws(SecretError) in
        try body(vault.vault.header.vaultID.hex, vault.keys.master)
      }
    }
  }

  /// The ids of the key slots that the vault's own sources and `others` have the credentials of: what a
  /// change of the master key needs. Every source is asked.
  package func keySlots(openedBy others: [any VaultCredentialSource]) throws(SecretError) -> Set<String> {
    try withSession { session throws(SecretError) in
      try session.read { vault throws(SecretError) in
        var ids: Set<String> = []
        try session.slotSecrets(of: vault.vault, others: others) { slot, _ in ids.insert(slot.id.hex) }
        return ids
      }
    }
  }
}
