internal import ArgumentParser

/// What completes an argument whose values are in the store. The argument's declaration names it, and
/// ``CommandDescription`` finds it there.
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
