internal import Coffer
internal import FoundationEssentials

/// The rule for secrets that expire: whether one has expired, or expires soon.
enum Expiry {
  enum State { case none, soon, expired }

  /// How many seconds before the expiry the state becomes `soon`, unless an option says otherwise: 14 days.
  static let soon = 14 * 86_400

  static func state(of metadata: SecretMetadata, now: Date, soon: Int = soon) -> State {
    guard let expires = metadata.expires else { return .none }
    if expires <= now { return .expired }
    return expires <= now.addingTimeInterval(Double(soon)) ? .soon : .none
  }

  static func text(_ expires: Date, now: Date) -> String {
    expires.ISO8601Format() + (expires <= now ? " (expired)" : "")
  }

  /// Warns of each of the secrets that has expired or expires soon.
  static func warn(of items: [SecretItem]) {
    for item in items.sorted(by: { $0.identifier < $1.identifier }) {
      guard let expires = item.metadata.expires else { continue }
      let name = item.identifier.account
      switch state(of: item.metadata, now: Date()) {
      case .none: break
      case .soon: note("secret: “\(name)” expires on \(expires.ISO8601Format()).")
      case .expired: note("secret: “\(name)” expired on \(expires.ISO8601Format()). Store a new value.")
      }
    }
  }
}
