/// A reference to secret bytes, for places that a noncopyable ``SecretBytes`` cannot go: collections, enums,
/// escaping closures. The bytes are wiped when the last reference is released. Thread-safe.
public final class SharedSecret: Sendable {
  public let bytes: SecretBytes

  public init(_ bytes: consuming SecretBytes) { self.bytes = bytes }
}
