import Coffer
import Configuration
import Hummingbird
import ServiceLifecycle
import Synchronization

/// The token that clients must show now. Thread-safe.
final class AccessToken: Sendable {
  /// In guarded memory. `nil`: no client is accepted.
  private let current: Mutex<SecretBytes?>

  init(_ token: String) { current = Mutex(SecretBytes(token)) }

  func replace(by token: String?) {
    let new = token.map { SecretBytes($0) }
    current.withLock { $0 = new }
  }

  /// Whether the request has the token in its header `Authorization`. The time does not tell how much of it is right.
  func isShown(by request: Request) -> Bool {
    guard let header = request.headers[.authorization], header.hasPrefix("Bearer "),
      let current = current.withLock({ $0 })
    else { return false }
    return SecretBytes(String(header.dropFirst("Bearer ".count))).isEqual(to: current)
  }
}

/// Follows the token in the store.
struct TokenRotation: Service {
  let secrets: ConfigReader
  let token: AccessToken

  func run() async throws {
    try await cancelWhenGracefulShutdown {
      // The current token first, and then each change, by whatever process. A token that is removed, or that cannot be
      // read, is `nil`: then nobody is let in. A store that becomes locked changes nothing.
      try await secrets.watchString(forKey: "api.token") { updates in
        for await text in updates { token.replace(by: text) }
      }
    }
  }
}
