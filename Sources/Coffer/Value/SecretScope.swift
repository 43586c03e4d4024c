public import CofferCore

/// A service and a backend that several values share, so that neither is repeated.
///
/// ```swift
/// extension SecretScope {
///   static let app = SecretScope(service: "com.example.app")
/// }
///
/// struct Settings {
///   @SecurelyStoredValue<String>(key: "token", in: .app) var token
/// }
/// ```
public struct SecretScope: Sendable {
  /// The service of the values.
  public let service: String
  /// The backend of the values, or `nil` for ``DefaultBackend``.
  public let backend: (any SecretBackend)?

  /// Creates a scope. Nothing is read.
  public init(service: String, backend: (any SecretBackend)? = nil) {
    self.service = service
    self.backend = backend
  }
}

extension SecurelyStoredValue {
  /// Creates the value for `key` with the service and the backend of `scope`.
  public convenience init(
    key: String, in scope: SecretScope, coder: any SecretCoder = StandardSecretCoder(),
    label: String? = nil, history: History = .none
  ) where Value: Codable {
    self.init(
      key: key, service: scope.service, backend: scope.backend, coder: coder, label: label, history: history)
  }
}
