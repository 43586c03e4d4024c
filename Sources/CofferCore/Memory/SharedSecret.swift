/// A reference to secret bytes, for places that the noncopyable ``SecretBytes`` cannot be in: collections, enums and
/// escaping closures. The bytes are wiped when the last reference is released. Thread-safe.
public final class SharedSecret: Sendable {
  /// The bytes.
  public let bytes: SecretBytes

  /// Takes ownership of `bytes`.
  public init(_ bytes: consuming SecretBytes) { self.bytes = bytes }
}
