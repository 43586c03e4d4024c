internal import ArgumentParser
internal import CofferConfiguration

/// As an option names a backend or one of its stores: in one of the forms of the registry.
extension BackendSelection: ExpressibleByArgument {
  init?(argument: String) {
    guard let selection = BackendRegistry.providers.selection(argument) else { return nil }
    self = selection
  }

  static var defaultCompletionKind: CompletionKind { .list(BackendRegistry.providers.map(\.name.rawValue)) }

  // The parser's message for another argument lists these.
  static var allValueStrings: [String] { BackendRegistry.providers.forms }
}
