/// The result of giving a secret another name.
package enum SecretMoveOutcome: Sendable {
  case moved
  case missing
  /// Another secret has the new identifier.
  case taken
}
