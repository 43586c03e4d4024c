internal import CofferCore
internal import CofferVault

#if Keyring
internal import CofferKeyring
#endif

extension BackendName {
  /// The desktop's keyring: a Secret Service on the session bus.
  public static let keyring = BackendName(rawValue: "keyring")
}

/// The keyring, which the trait `Keyring` builds in.
struct KeyringProvider: BackendProvider {
  let name = BackendName.keyring
  let placeName: String? = "COLLECTION"
  let placeVariable: String? = nil
  let variables: [String] = []
  let setup = "Start a Secret Service on the session bus."

  func isRecordable(place: String) -> Bool { true }

  func availability(in configuration: CofferConfiguration) throws(SecretError) -> Availability? {
    #if Keyring
    let keyring = KeyringBackend(environment: configuration.environmentWithoutKeys)
    if configuration.readsValueFirst { keyring.prepareSession() }
    if try !keyring.isAvailable() { return nil }
    return Availability(reason: "The session bus has a keyring", backend: keyring)
    #else
    return nil
    #endif
  }

  func absence(in configuration: CofferConfiguration) -> String { "no keyring" }

  func backend(
    at place: String?,
    in configuration: CofferConfiguration,
    additionalCredentials: [any VaultCredentialSource],
    options: VaultOptions
  ) throws(SecretError) -> any SecretBackend {
    #if Keyring
    let environment = configuration.environmentWithoutKeys
    var options = KeyringOptions(environment: environment)
    options.collection = place
    let keyring = KeyringBackend(options: options, environment: environment)
    if configuration.readsValueFirst { keyring.prepareSession() }
    return keyring
    #else
    throw SecretError(
      .unsupported,
      "This program was built without the keyring.",
      advice: "Build it with the package's Keyring trait, or set COFFER_BACKEND to another backend."
    )
    #endif
  }

  func examine(_ diagnosis: inout BackendDiagnosis) throws(SecretError) {
    let keyring = try backend(
      at: diagnosis.place, in: diagnosis.configuration, additionalCredentials: [], options: VaultOptions())
    #if Keyring
    let status = KeyringBackend.probe(
      environment: diagnosis.configuration.environmentWithoutKeys, collection: diagnosis.place)
    diagnosis.subject = "bus"
    guard status.isBusReachable else {
      throw status.problem
        ?? SecretError(
          .unavailable, "There is no session bus, so no keyring can be reached.",
          advice: "Use another backend.")
    }
    diagnosis.ok("\(status.busAddress ?? "the session bus") responds")

    diagnosis.subject = "keyring"
    if let problem = status.problem { throw problem }
    guard status.isAvailable else {
      throw SecretError(
        .unavailable, "No keyring runs on the session bus, and the bus cannot start one.", advice: setup)
    }
    diagnosis.ok(
      status.isServiceRunning ? "a keyring is running" : "a keyring is not running, but can be started")
    guard status.isServiceRunning else { return }
    if status.isWrittenLater {
      diagnosis.note(
        "KWallet answers before it writes, so a change is lost if it is killed within some seconds", nil,
        "Store a secret that must not be lost in a vault.")
    }
    if let collection = status.collection {
      if status.isLocked != true {
        diagnosis.ok("the collection “\(collection)” is unlocked")
      } else if status.mayPrompt {
        diagnosis.note(
          "the collection “\(collection)” is locked; the keyring will prompt", .locked,
          "Unlock it, or answer the prompt.")
      } else {
        throw SecretError(
          .locked, "The collection “\(collection)” is locked, and a prompt is not possible.",
          advice: "Unlock it in the desktop session, or use another backend.")
      }
    } else {
      diagnosis.note("there is no default collection; storing the first secret creates it")
    }
    if status.isLocked != true {
      let count = try keyring.identifiers(inService: diagnosis.service).count
      diagnosis.ok("the keyring responds, and has \(count) secrets in the service “\(diagnosis.service)”")
    }
    #endif
  }

  func examineSurroundings(_ diagnosis: inout BackendDiagnosis) {}
}
