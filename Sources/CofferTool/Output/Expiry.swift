internal import Coffer
internal import FoundationEssentials

/// The rule for secrets that expire: whether one has expired, or expires soon.
enum Expiry {
  enum State { case none, soon, expired }

  /// The seconds before the expiry in which the state is soon, unless a person chooses others: 14 days.
  static let soon = 14 * 86_400

  static func state(of metadata: SecretMetadata, now: Date, soon: Int = soon) -> State {
    guard let expires = metadata.expires else { return .none }
    if expires <= now { return .expired }
    return expires <= now.addingTimeInterval(Double(soon)) ? .soon : .none
  }

  static func text(_ expires: Date, now: Date) -> String {
    expires.ISO8601Format() + (expires <= now ? " (expired)" : "")
  }

  /// Returns what `read` does, which looks up `identifiers` in `backend`, and prints their warnings. A keyring tells the
  /// expiry during the lookup. To ask it afterwards would take two more round trips.
  static func warning<R: ~Copyable>(
    of identifiers: [SecretIdentifier], in backend: any SecretBackend, _ read: () throws -> R
  ) rethrows -> R {
    #if Keyring
    if let keyring = backend as? KeyringBackend {
      keyring.observeExpiry { warn(of: SecretItem(identifier: $0, metadata: SecretMetadata(expires: $1))) }
      return try read()
    }
    #endif
    let values = try read()
    for identifier in Set(identifiers).sorted() {
      do throws(SecretError) { if let item = try backend.item(identifier) { warn(of: item) } } catch {
        break  // the values have been read, and a warning is not worth a failure
      }
    }
    return values
  }

  private static func warn(of item: SecretItem) {
    guard let expires = item.metadata.expires else { return }
    let name = item.identifier.account
    switch state(of: item.metadata, now: Date()) {
    case .none: break
    case .soon: note("secret: “\(name)” expires on \(expires.ISO8601Format()).")
    case .expired: note("secret: “\(name)” expired on \(expires.ISO8601Format()). Store a new value.")
    }
  }
}
