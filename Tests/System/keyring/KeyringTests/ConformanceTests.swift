#if Keyring
import CofferKeyring
import CofferTestSupport
import CofferTesting
import Testing

@Suite(.needsKeyring) struct KeyringConformanceTests {
  @Test(arguments: [(PrivateKeyring.Kind.encrypted, false), (.encrypted, true), (.passwordless, false)])
  func conforms(_ kind: PrivateKeyring.Kind, afterRestart: Bool) async throws {
    let keyring = try await PrivateKeyring(kind)
    let backend = keyring.backend()
    if afterRestart {
      try backend.store("1", identifier("before the restart"))
      try await keyring.restartDaemon()
    }
    var options = SecretBackendConformance.Options()
    options.maximumSecretSize = KeyringBackend.maximumSecretSize
    // The service's signals report items, and a store may cause several.
    options.omissions = [.exactChanges]
    options.changeTimeout = .seconds(20)
    try await SecretBackendConformance(options: options) { backend }.run()
  }
}
#endif
