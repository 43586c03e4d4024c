/// The result of giving a secret another name.
package enum SecretMoveOutcome: Sendable {
  /// The secret has the new identifier.
  case moved
  /// There is no such secret.
  case missing
  /// Another secret has the new identifier.
  case taken
}
