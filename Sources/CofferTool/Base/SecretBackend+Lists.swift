internal import Coffer

extension SecretBackend {
  /// Returns the identifiers of the secrets in `service`, or of all secrets if it is `nil`, sorted.
  func identifiers(inService service: String?) throws(SecretError) -> [SecretIdentifier] {
    try items(inService: service).map(\.identifier)
  }

  /// Returns these identifiers, and then those of the removed secrets that can be restored.
  func formerIdentifiers(inService service: String?) throws(SecretError) -> [SecretIdentifier] {
    try identifiers(inService: service) + removedItems(inService: service).map(\.identifier)
  }

  /// Returns the secrets that exist. Reads those in `service` together.
  func secrets(
    _ identifiers: [SecretIdentifier], together service: String? = nil
  ) throws(SecretError) -> [SecretIdentifier: Secret] {
    let wanted = Set(identifiers)
    var found: [SecretIdentifier: Secret] = [:]
    if let service {
      try forEachSecret(inService: service) { secret in
        if wanted.contains(secret.identifier) { found[secret.identifier] = secret }
      }
    }
    for identifier in wanted where found[identifier] == nil { found[identifier] = try secret(identifier) }
    return found
  }
}
