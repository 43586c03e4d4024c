package import CofferCore

#if Keyring
internal import CofferKeyring
#endif

/// How the choice of a backend reaches the keyring: the only place here that knows whether it was built in.
package struct KeyringProvider: Sendable {
  /// Whether a Secret Service owns its name on the session bus, or can be started there.
  package var isAvailable: @Sendable (_ environment: [String: String]) -> Bool
  package var make: @Sendable (_ environment: [String: String]) throws(SecretError) -> any SecretBackend

  package init(
    isAvailable: @escaping @Sendable ([String: String]) -> Bool,
    make: @escaping @Sendable ([String: String]) throws(SecretError) -> any SecretBackend
  ) {
    self.isAvailable = isAvailable
    self.make = make
  }

  /// What this build has.
  #if Keyring
  package static let builtIn = KeyringProvider(
    isAvailable: { KeyringBackend.isAvailable(environment: $0) },
    make: { environment throws(SecretError) in KeyringBackend(environment: environment) }
  )
  #else
  package static let builtIn = KeyringProvider(
    isAvailable: { _ in false },
    make: { _ throws(SecretError) in
      throw SecretError(
        .unsupported,
        "This program was built without the keyring.",
        advice: "Build it with the package's Keyring trait, or use a vault: set COFFER_BACKEND=vault."
      )
    }
  )
  #endif
}
