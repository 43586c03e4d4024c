#if Keyring
import CofferKeyring
import CofferTesting
import Testing

extension KeyringTests {
  @Suite(.serialized) struct Conformance {
    private var options: SecretBackendConformance.Options {
      var options = SecretBackendConformance.Options()
      options.maximumSecretSize = KeyringBackend.maximumSecretSize
      // The service's signals tell of items, and several may come for one store.
      options.omissions = [.exactChanges]
      options.changeTimeout = .seconds(20)
      return options
    }

    @Test func holdsOnAnEncryptedKeyringAndAfterARestart() async throws {
      let keyring = try PrivateKeyring(.encrypted)
      let backend = keyring.backend()
      try await SecretBackendConformance(options: options) { backend }.run()
      try keyring.restartDaemon()
      try await SecretBackendConformance(options: options) { backend }.run()
    }

    @Test func holdsOnAPasswordlessKeyring() async throws {
      let keyring = try PrivateKeyring(.passwordless)
      let backend = keyring.backend()
      try await SecretBackendConformance(options: options) { backend }.run()
    }
  }
}
#endif
