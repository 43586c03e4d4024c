internal import CofferCore
internal import CofferSystem
internal import CofferVault

extension BackendName {
  /// An encrypted file.
  public static let vault = BackendName(rawValue: "vault")
}

/// The vault that `COFFER_VAULT` names, or the default vault.
struct VaultProvider: BackendProvider {
  let name = BackendName.vault
  let placeName = "PATH"
  let placeVariable: String? = "COFFER_VAULT"
  let variables = ["COFFER_VAULT", "COFFER_PIN"] + BackendConfiguration.keyVariables
  let setup = "Create a vault, by the tool with secret init or in Swift with VaultBackend.create."

  func isRecordable(place: String) -> Bool { place.hasPrefix("/") || RemoteURL.isURL(place) }

  func availability(in configuration: BackendConfiguration) throws(SecretError) -> Availability? {
    // A named vault that is missing is an error, not a reason to choose another backend.
    if configuration.namedVaultPath != nil { return Availability(reason: "COFFER_VAULT names a vault") }
    try configuration.directories.requireHome(for: .data)
    let path = configuration.vaultPath
    return try Path.exists(path) ? Availability(reason: "There is a vault at \(path)") : nil
  }

  func absence(in configuration: BackendConfiguration) -> String { "no vault at \(configuration.vaultPath)" }

  func backend(
    at place: String?, in configuration: BackendConfiguration, additionalCredentials: [VaultCredentialSource],
    options: VaultOptions
  ) throws(SecretError) -> any SecretBackend {
    if place == nil && configuration.namedVaultPath == nil {
      try configuration.directories.requireHome(for: .data)
    }
    try VaultCredential.requirePath(place ?? configuration.vaultPath, from: "The path of the vault")
    return configuration.vault(at: place, additionalCredentials: additionalCredentials, options: options)
  }
}
