internal import ArgumentParser
internal import Coffer
internal import CofferConfiguration

/// A backend as `copy` names it, in one of the forms of the registry.
struct BackendArgument: ExpressibleByArgument {
  let name: BackendName
  private let place: String?

  init?(argument: String) {
    guard let parts = BackendRegistry.parse(argument) else { return nil }
    (name, place) = parts
  }

  /// Returns the backend, without opening it.
  func open() throws -> any SecretBackend { try BackendOptions.open(name, at: place) }
}
