package import CofferCore
package import CofferVault

/// How the configuration chooses and creates a backend. To add one, add a file with a type that conforms, and a line to
/// ``BackendRegistry``.
package protocol BackendProvider: Sendable {
  var name: BackendName { get }

  /// The word for one of the backend's stores in messages, such as `PATH`.
  var placeName: String { get }

  /// The variable that names a store if no place is given, or `nil` if there is no such variable.
  var placeVariable: String? { get }

  /// Whether the configuration file may name this place: it must not depend on the working directory.
  func isRecordable(place: String) -> Bool

  /// The variables that have no effect if another backend is chosen.
  var variables: [String] { get }

  /// A sentence that says how to make the backend available.
  var setup: String { get }

  /// Returns why this backend is the automatic choice, or `nil` if the backend is not available. Throws if this cannot
  /// be determined. Then no later backend is chosen.
  func availability(in configuration: BackendConfiguration) throws(SecretError) -> Availability?

  /// What is missing if the backend is not available, such as “no keyring”.
  func absence(in configuration: BackendConfiguration) -> String

  /// Creates the backend for the store at `place`, or for the one that the configuration names. Does not open it.
  ///
  /// Throws `.unsupported` if the program was built without the backend.
  func backend(
    at place: String?, in configuration: BackendConfiguration, additionalCredentials: [VaultCredentialSource],
    options: VaultOptions
  ) throws(SecretError) -> any SecretBackend
}

/// A backend, or one of its stores, as `COFFER_BACKEND`, the configuration file and options name it: `NAME` or
/// `NAME:PLACE`.
package struct BackendSelection: Hashable, Sendable, CustomStringConvertible {
  package let name: BackendName
  /// The store, or `nil` if only the backend is selected.
  package let place: String?

  package init(_ name: BackendName, at place: String? = nil) {
    self.name = name
    self.place = place
  }

  /// The form that ``Swift/Array/selection(_:)`` reads.
  package var description: String { place.map { "\(name):\($0)" } ?? name.rawValue }
}

extension [any BackendProvider] {
  /// The texts that select a backend or one of its stores, for messages: `NAME` and `NAME:PLACE`.
  package var forms: [String] {
    flatMap { [$0.name.rawValue, "\($0.name):\($0.placeName)"] }
  }

  /// The backend and the store that a text in one of the ``forms`` names, or `nil` for any other text.
  package func selection(_ text: String) -> BackendSelection? {
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard let provider = first(where: { $0.name.rawValue.utf8.elementsEqual(parts[0].utf8) }) else { return nil }
    if parts.count == 1 { return BackendSelection(provider.name) }
    return parts[1].isEmpty ? nil : BackendSelection(provider.name, at: String(parts[1]))
  }
}

/// Why a backend is the automatic choice.
package struct Availability {
  /// A sentence without its full stop.
  package let reason: String
  /// The backend, if it was created to find out.
  package var backend: (any SecretBackend)?
}

/// Every backend of this version. The automatic choice is the first one that is available.
package enum BackendRegistry {
  package static let providers: [any BackendProvider] = [
    VaultProvider(),
    KeyringProvider(),
  ]
}
