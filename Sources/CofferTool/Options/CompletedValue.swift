internal import ArgumentParser

/// The kind of text in the store that completes an argument. It is named in the argument's declaration, where
/// ``CommandDescription`` finds it.
enum CompletedValue: String {
  /// The names of the secrets in the selected service.
  case names
  /// Names of secrets, and of removed secrets that have a history.
  case formerNames
  case services
  /// VAR=NAME, with the names of the secrets in the selected service.
  case assignment
  case keySlots

  var kind: CompletionKind { .shellCommand(rawValue) }
}
