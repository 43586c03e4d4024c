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
  package let service: String
  /// The backend of the values, or `nil` for ``DefaultBackend``.
  package let backend: (any SecretBackend)?

  /// Creates a scope of the values of `service` in `backend`, or in ``DefaultBackend``. Nothing is read.
  public init(service: String, backend: (any SecretBackend)? = nil) {
    (self.service, self.backend) = (service, backend)
  }

  /// The scope of a value: `service` and `backend`, if they are given, go before those of `scope`.
  init(_ scope: SecretScope?, _ service: String?, _ backend: (any SecretBackend)?) {
    self.init(service: service ?? scope?.service ?? Executable.name, backend: backend ?? scope?.backend)
  }
}
