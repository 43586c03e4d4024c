public import CofferCore
package import CofferVaultFormat

/// A source of credentials for a vault: a file, a prompt, a call of a key management service.
///
/// A vault asks its sources in order when it is first used, and again when another process has changed its master key.
public struct VaultCredentialSource: Sendable {
  /// What a source is told when it is asked for a credential.
  public struct Request: Sendable {
    /// The path that the vault is opened by.
    public var path: String { vault.path }
    /// The vault's id, which never changes: 32 lower-case hexadecimal digits.
    public var vaultID: String { vault.id }
    /// What can be read of the vault before it is opened.
    package let vault: VaultDescription
    /// How many credentials of this source did not open the vault: 0 at the first attempt.
    public let failures: Int
  }

  /// The name of the source in messages, such as `COFFER_KEY_FILE`. Never a secret.
  package let name: String
  /// Whether the source may ask a person. Such a source is not used for a read that no person asked for, such as one
  /// that follows a change by another process.
  package let mayPrompt: Bool
  /// How often the source is asked while its credentials do not open the vault.
  let attempts: Int
  private let body: @Sendable (Request) throws(SecretError) -> VaultCredential?

  /// Creates a source.
  ///
  /// - Parameters:
  ///   - name: The name of the source in messages. Never a secret.
  ///   - mayPrompt: Whether `body` may ask a person.
  ///   - attempts: How often `body` is called while its credentials do not open the vault: 1…100.
  ///   - body: Returns a credential, or `nil` if it has none for the vault; then the next source is asked. Throws if it
  ///     should have one and cannot return it; then no other source is asked. It is called from any thread. Calls on
  ///     the vault wait for it, so it needs a deadline of its own.
  public init(
    _ name: String, mayPrompt: Bool = false, attempts: Int = 1,
    _ body: @escaping @Sendable (Request) throws(SecretError) -> VaultCredential?
  ) {
    (self.name, self.mayPrompt, self.body) = (name, mayPrompt, body)
    self.attempts = min(max(attempts, 1), 100)
  }

  /// Creates a source that always returns `credential`.
  public init(_ name: String, _ credential: VaultCredential) {
    self.init(name) { _ throws(SecretError) in credential }
  }

  package func credential(
    for vault: VaultDescription, after failures: Int = 0
  ) throws(SecretError) -> VaultCredential? {
    try body(Request(vault: vault, failures: failures))
  }
}

/// What can be read of a vault without opening it.
package struct VaultDescription: Sendable {
  /// The path that the vault is opened by.
  package let path: String
  /// The vault's id, which never changes: 32 lower-case hexadecimal digits.
  package let id: String
  /// Another master key has another text here. It is not authenticated.
  package let masterKey: String
  private let slots: [KeySlot]

  /// The key slots in their order. They are not authenticated.
  package var keySlots: [VaultKeySlot] { slots.enumerated().map { VaultKeySlot($1, at: $0) } }

  package init(path: String, id: String, masterKey: String = "", slots: [KeySlot] = []) {
    (self.path, self.id, self.masterKey, self.slots) = (path, id, masterKey, slots)
  }
}

extension VaultFile {
  package var description: VaultDescription {
    let key = Bytes16(tagOf: header.masterCommitment).hex
    return VaultDescription(path: path, id: header.vaultID.hex, masterKey: key, slots: header.slots)
  }
}
