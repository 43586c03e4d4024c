#if SwiftConfiguration
internal import Coffer
internal import CofferCore
internal import Configuration

/// Reads the secrets of a scope by the keys of the configuration. Thread-safe.
struct SecretSource: Sendable {
  let scope: SecretScope
  let separator: String

  var name: String { "SecretsProvider[\(scope.service)]" }

  func account(of key: AbsoluteConfigKey) -> String { key.components.joined(separator: separator) }

  func identifier(of key: AbsoluteConfigKey) throws(SecretError) -> SecretIdentifier {
    try SecretIdentifier(service: scope.service, account: account(of: key))
  }

  /// The backend, or the error that there is none yet.
  func backend() -> Result<any SecretBackend, SecretError> {
    if let backend = scope.backend { return .success(backend) }
    return Result { () throws(SecretError) in try DefaultBackend.current() }
  }

  /// Reads the secret that `key` names, or all secrets of the service if it is `nil`.
  func read(
    _ key: AbsoluteConfigKey?, from backend: Result<any SecretBackend, SecretError>, mayPrompt: Bool = false
  ) -> SecretsSnapshot {
    let secrets = Result { () throws(SecretError) -> [SecretIdentifier: SecretBytes] in
      let wanted = try key.map(identifier)
      let backend = mayPrompt ? try backend.get() : try backend.get().withoutPrompts
      guard let wanted else {
        let all = try backend.secrets(inService: scope.service)
        return Dictionary(uniqueKeysWithValues: all.map { ($0.identifier, $0.value) })
      }
      return try backend.lookUp(wanted).map { [wanted: $0] } ?? [:]
    }
    return SecretsSnapshot(source: self, secrets: secrets)
  }
}

/// One secret or all secrets of a service, as they were when they were read. The values are in guarded memory.
struct SecretsSnapshot: ConfigSnapshot, CustomStringConvertible {
  let source: SecretSource
  let secrets: Result<[SecretIdentifier: SecretBytes], SecretError>

  var providerName: String { source.name }
  var description: String { providerName }

  func value(forKey key: AbsoluteConfigKey, type: ConfigType) throws -> LookupResult {
    let identifier = try source.identifier(of: key)
    let secret = try secrets.mapError { $0.about(identifier) }.get()[identifier]
    let content = try secret.map { try ConfigContent(decoding: $0, as: type, identifier) }
    return LookupResult(encodedKey: source.account(of: key), value: content.map { ConfigValue($0, isSecret: true) })
  }
}
#endif
