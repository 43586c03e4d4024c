internal import ArgumentParser
internal import CofferConfiguration

/// The value of an option that names a backend or one of its stores, in one of the forms of the registry.
extension BackendSelection: ExpressibleByArgument {
  init?(argument: String) {
    guard let selection = BackendRegistry.providers.selection(argument) else { return nil }
    self = selection
  }

  static var defaultCompletionKind: CompletionKind { .list(BackendRegistry.providers.map(\.name.rawValue)) }

  // The parser's message for an invalid argument lists these.
  static var allValueStrings: [String] { BackendRegistry.providers.forms }
}
