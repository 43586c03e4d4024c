#if SwiftConfiguration
internal import Coffer
internal import CofferCore
internal import Configuration

/// Reads the secrets of a scope by the keys of the configuration. Thread-safe.
struct SecretSource: Sendable {
  let scope: SecretScope
  let separator: String

  var name: String { "SecretsProvider[\(scope.service)]" }

  /// The account of the secret that `key` names.
  func account(of key: AbsoluteConfigKey) -> String { key.components.joined(separator: separator) }

  private func identifier(of key: AbsoluteConfigKey) throws(SecretError) -> SecretIdentifier {
    try SecretIdentifier(service: scope.service, account: account(of: key))
  }

  /// The backend, or the error that there is none yet.
  func backend() -> Result<any SecretBackend, SecretError> {
    if let backend = scope.backend { return .success(backend) }
    return Result { () throws(SecretError) in try DefaultBackend.current() }
  }

  /// Reads one secret.
  func read(
    _ key: AbsoluteConfigKey, from backend: Result<any SecretBackend, SecretError>, mayPrompt: Bool
  ) -> SecretReading {
    do throws(SecretError) {
      let identifier = try identifier(of: key)
      do throws(SecretError) {
        let backend = try backend.get()
        guard let secret = try (mayPrompt ? backend : backend.withoutPrompts).lookUp(identifier) else {
          return .absent
        }
        return .value(SharedSecret(secret), identifier)
      } catch {
        throw error.about(identifier)
      }
    } catch {
      return .failed(error)
    }
  }

  /// Reads all secrets of the service.
  func readAll(from backend: Result<any SecretBackend, SecretError>) -> SecretsSnapshot {
    SecretsSnapshot(
      source: self,
      secrets: Result { () throws(SecretError) in
        try backend.get().withoutPrompts.secrets(inService: scope.service)
      })
  }
}

/// The result of reading one secret.
enum SecretReading: Sendable {
  case absent
  case value(SharedSecret, SecretIdentifier)
  case failed(SecretError)

  /// The value as configuration.
  func result(for account: String, type: ConfigType) throws(SecretError) -> LookupResult {
    switch self {
    case .absent: return LookupResult(encodedKey: account, value: nil)
    case .failed(let error): throw error
    case .value(let secret, let identifier):
      let content = try ConfigContent(decoding: secret.bytes, as: type, identifier)
      return LookupResult(encodedKey: account, value: ConfigValue(content, isSecret: true))
    }
  }
}

/// The secrets of a service as they were when they were read. The values are in guarded memory.
struct SecretsSnapshot: ConfigSnapshot, CustomStringConvertible {
  let source: SecretSource
  let secrets: Result<[SecretIdentifier: SharedSecret], SecretError>

  var providerName: String { source.name }
  var description: String { providerName }

  func value(forKey key: AbsoluteConfigKey, type: ConfigType) throws -> LookupResult {
    let account = source.account(of: key)
    let identifier = try SecretIdentifier(service: source.scope.service, account: account)
    let reading: SecretReading
    switch secrets {
    case .success(let secrets): reading = secrets[identifier].map { .value($0, identifier) } ?? .absent
    case .failure(let error): reading = .failed(error.about(identifier))
    }
    return try reading.result(for: account, type: type)
  }
}
#endif
