public import CofferCore

/// A source of credentials that is a closure, such as a call of a key management service.
public struct VaultCredentialClosure: VaultCredentialSource {
  /// The name of the source in messages. Never a secret.
  public let name: String
  /// Whether the closure may ask a person.
  public let mayPrompt: Bool
  private let body: @Sendable (VaultDescription) throws(SecretError) -> VaultCredential?

  /// Creates a source. `body` is called as ``VaultCredentialSource/credential(for:)``: when the vault is first used, and
  /// again when another process has changed its master key. Calls on the vault wait for `body`, so `body` needs a deadline
  /// of its own.
  public init(
    name: String, mayPrompt: Bool = false,
    _ body: @escaping @Sendable (VaultDescription) throws(SecretError) -> VaultCredential?
  ) {
    (self.name, self.mayPrompt, self.body) = (name, mayPrompt, body)
  }

  /// Calls the closure, and throws what it throws.
  public func credential(for vault: VaultDescription) throws(SecretError) -> VaultCredential? {
    try body(vault)
  }

  /// Creates a source that always returns `credential`.
  package init(_ credential: VaultCredential, named name: String) {
    self.init(name: name) { _ throws(SecretError) in credential }
  }
}

extension VaultBackend {
  /// A vault at `path` that is opened with `key`: the 32 bytes of a key, such as ``VaultKey/parse(_:)`` returns.
  ///
  /// Nothing is opened yet. If `key` does not have 32 bytes, each use throws `.invalidKey`.
  public convenience init(
    path: String, key: SecretBytes, options: VaultOptions = VaultOptions()
  ) {
    let source = VaultCredentialClosure(.key(key), named: "the given key")
    self.init(path: path, credentials: [source], options: options)
  }
}
