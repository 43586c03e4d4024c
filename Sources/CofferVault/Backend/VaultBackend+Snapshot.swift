package import CofferCore
internal import CofferVaultFormat

extension VaultBackend: SnapshotSecretBackend {
  package func snapshot(ofService service: String) throws(SecretError) -> [SecretIdentifier: SharedSecret] {
    try read { vault throws(SecretError) in
      var secrets: [SecretIdentifier: SharedSecret] = [:]
      for item in try vault.allItems() where item.record.isInService(service) {
        let identifier = try item.record.item().identifier
        secrets[identifier] = SharedSecret(try vault.value(of: item, for: identifier))
      }
      return secrets
    }
  }
}
