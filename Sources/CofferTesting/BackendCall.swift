public import CofferCore

/// One of the calls by which a program reaches a secret, in one of the ways to make it: on the backend, in a
/// transaction, and both on `withoutPrompts`. For tests that a decorator is passed by no call:
///
/// ```swift
/// for call in BackendCall.all where call.isChange {
///   #expect(throws: SecretError.self) { try call.make(on: ReadOnlyBackend(memory), identifier) }
/// }
/// ```
public struct BackendCall: Sendable, CustomStringConvertible {
  /// The call and the way, such as “erase in a transaction”.
  public let description: String
  /// Whether the call changes secrets.
  public let isChange: Bool
  private let body: Body
  private let way: Way

  private typealias Body = @Sendable (any SecretAccess, SecretIdentifier) throws(SecretError) -> Void
  private typealias Way =
    @Sendable (any SecretBackend, (any SecretAccess) throws(SecretError) -> Void) throws(SecretError) -> Void

  /// Makes the call about `identifier`, of which the backend should have a value and an earlier one. Throws what the
  /// call throws.
  public func make(on backend: any SecretBackend, _ identifier: SecretIdentifier) throws(SecretError) {
    try way(backend) { access throws(SecretError) in try body(access, identifier) }
  }

  /// Every call in every way.
  public static let all: [BackendCall] = ways.flatMap { (place, way) in
    reads.map { BackendCall(description: $0 + place, isChange: false, body: $1, way: way) }
      + changes.map { BackendCall(description: $0 + place, isChange: true, body: $1, way: way) }
  }

  private static let ways: [(String, Way)] = [
    ("", { backend, body throws(SecretError) in try body(backend) }),
    (" without prompts", { backend, body throws(SecretError) in try body(backend.withoutPrompts) }),
    (" in a transaction", { backend, body throws(SecretError) in try backend.withTransaction(body) }),
    (
      " in a transaction without prompts",
      { backend, body throws(SecretError) in try backend.withoutPrompts.withTransaction(body) }
    ),
  ]

  private static let reads: [(String, Body)] = [
    ("secret", { access, identifier throws(SecretError) in _ = try access.secret(identifier) }),
    ("lookUp", { access, identifier throws(SecretError) in _ = try access.lookUp(identifier) }),
    ("item", { access, identifier throws(SecretError) in _ = try access.item(identifier) }),
    ("items", { access, identifier throws(SecretError) in _ = try access.items(inService: identifier.service) }),
    ("secrets", { access, identifier throws(SecretError) in _ = try access.secrets(inService: identifier.service) }),
    ("versions", { access, identifier throws(SecretError) in _ = try access.versions(of: identifier) }),
    (
      "secret of a version", { access, identifier throws(SecretError) in _ = try access.secret(identifier, version: 1) }
    ),
    ("removedItems", { access, _ throws(SecretError) in _ = try access.removedItems(inService: nil) }),
  ]

  private static let changes: [(String, Body)] = [
    ("store", { access, identifier throws(SecretError) in try access.store(SecretBytes("call"), for: identifier) }),
    ("restore", { access, identifier throws(SecretError) in try access.restore(identifier) }),
    ("remove", { access, identifier throws(SecretError) in try access.remove(identifier) }),
    ("erase", { access, identifier throws(SecretError) in try access.erase(identifier) }),
    ("removeAll", { access, identifier throws(SecretError) in try access.removeAll(inService: identifier.service) }),
  ]
}
