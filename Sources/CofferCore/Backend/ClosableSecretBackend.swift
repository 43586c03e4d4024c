/// A backend that keeps something between calls, such as an open file and keys in memory, which it can give up.
public protocol ClosableSecretBackend: SecretBackend {
  /// Gives up what the backend keeps between calls. The next call gets it again. Closing twice has no further effect.
  ///
  /// Throws `.timedOut` if another thread uses the backend for too long, and `.conflict` inside a transaction of the same
  /// backend.
  func close() throws(SecretError)
}
