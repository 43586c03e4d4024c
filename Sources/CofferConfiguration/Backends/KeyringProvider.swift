internal import CofferCore
internal import CofferVault

#if Keyring
internal import CofferKeyring
#endif

extension BackendName {
  /// The desktop's keyring: a Secret Service on the session bus.
  public static let keyring = BackendName(rawValue: "keyring")
}

/// The keyring. A program has it if the trait `Keyring` is on.
struct KeyringProvider: BackendProvider {
  let name = BackendName.keyring
  let placeName = "COLLECTION"
  let placeVariable: String? = nil
  let variables: [String] = []
  #if Keyring
  let setup = "Start a Secret Service on the session bus."
  func absence(in configuration: BackendConfiguration) -> String { "no keyring" }
  #else
  let setup = "For a keyring, build the program with the trait Keyring of the package coffer."
  func absence(in configuration: BackendConfiguration) -> String { "no support for keyrings in this program" }
  #endif

  func isRecordable(place: String) -> Bool { true }

  func availability(in configuration: BackendConfiguration) throws(SecretError) -> Availability? {
    #if Keyring
    let keyring = KeyringBackend(environment: configuration.environmentWithoutKeys)
    if try !keyring.isAvailable() { return nil }
    return Availability(reason: "The session bus has a keyring", backend: keyring)
    #else
    return nil
    #endif
  }

  func backend(
    at place: String?, in configuration: BackendConfiguration, additionalCredentials: [VaultCredentialSource],
    options: VaultOptions
  ) throws(SecretError) -> any SecretBackend {
    #if Keyring
    let environment = configuration.environmentWithoutKeys
    var options = KeyringOptions(environment: environment)
    options.collection = place
    return KeyringBackend(options: options, environment: environment)
    #else
    throw SecretError(
      .unsupported, "This program was built without the keyring.",
      advice: "Build it with the package's Keyring trait, or set COFFER_BACKEND to another backend."
    )
    #endif
  }
}
