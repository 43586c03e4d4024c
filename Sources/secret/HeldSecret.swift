internal import Coffer

/// Secret bytes with any number of owners: what is not copyable itself cannot be in a collection.
final class HeldSecret: Sendable {
  let bytes: SecretBytes
  init(_ bytes: consuming SecretBytes) { self.bytes = bytes }
}
