import CofferCore
import CofferVault

@testable import CofferConfiguration

/// A keyring without a session bus.
struct StubKeyring: BackendProvider {
  let name = BackendName.keyring
  let placeName = "COLLECTION"
  let placeVariable: String? = nil
  let variables: [String] = []
  let setup = "Start the keyring."
  var isAvailable: Bool
  /// Called with the environment that the keyring would see.
  var inspect: @Sendable ([String: String]) -> Void = { _ in }
  /// Called with the place of a backend that is made.
  var make: @Sendable (String?) -> Void = { _ in }

  func isRecordable(place: String) -> Bool { true }

  func availability(in configuration: BackendConfiguration) -> Availability? {
    inspect(configuration.environmentWithoutKeys)
    return isAvailable ? Availability(reason: "The test has a keyring") : nil
  }

  func absence(in configuration: BackendConfiguration) -> String { "no keyring" }

  func backend(
    at place: String?,
    in configuration: BackendConfiguration,
    additionalCredentials: [VaultCredentialSource],
    options: VaultOptions
  ) throws(SecretError) -> any SecretBackend {
    make(place)
    if isAvailable { return MemoryBackend() }
    throw SecretError(.unavailable, "The test has no keyring.")
  }
}
