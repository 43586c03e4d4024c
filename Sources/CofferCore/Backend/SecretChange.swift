/// A notice that a secret was stored or removed, without the value. To get the value, look the secret up again. Notices
/// are equal if they have the same identifier.
public struct SecretChange: Hashable, Sendable {
  /// The secret that was stored or removed, or `nil` if any secret may have been.
  public let identifier: SecretIdentifier?
  /// The object that made the change by ``making(for:_:)``, or `nil` if that is not known.
  package let origin: ObjectIdentifier?

  /// Creates the notice for one secret, or for all secrets if `identifier` is `nil`.
  public init(_ identifier: SecretIdentifier?) { (self.identifier, origin) = (identifier, nil) }

  /// Creates the notice for a change that the current call on the backend has made. Changes by others have no origin.
  package init(madeNow identifier: SecretIdentifier?) {
    (self.identifier, origin) = (identifier, Self.currentOrigin)
  }

  @TaskLocal private static var currentOrigin: ObjectIdentifier?

  /// Runs `body`. The changes that its calls on a backend make have `object` as their origin, if the backend knows
  /// which call has made a change. `object` knows the new value, and need not read it again.
  package static func making<R>(for object: AnyObject, _ body: () throws(SecretError) -> R) throws(SecretError) -> R {
    try $currentOrigin.withValue(ObjectIdentifier(object)) { Result(catching: body) }.get()
  }

  /// Whether both have the same identifier.
  public static func == (left: SecretChange, right: SecretChange) -> Bool {
    left.identifier == right.identifier
  }

  /// Hashes the identifier.
  public func hash(into hasher: inout Hasher) { hasher.combine(identifier) }
}
