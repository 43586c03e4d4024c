internal import ArgumentParser
internal import CofferConfiguration

/// A backend or one of its stores as an option names it, in one of the forms of the registry.
struct BackendArgument: ExpressibleByArgument {
  let selection: BackendSelection

  init?(argument: String) {
    guard let selection = BackendRegistry.providers.selection(argument) else { return nil }
    self.selection = selection
  }

  static var defaultCompletionKind: CompletionKind { .list(BackendRegistry.providers.map(\.name.rawValue)) }

  static var forms: [String] { BackendRegistry.providers.forms }

  // The parser's message for another argument lists these.
  static var allValueStrings: [String] { forms }
}
