internal import Coffer

/// The stores that a command does not use, for hints. Read only if that needs no prompt and stretches no passphrase.
enum OtherStores {
  /// Whether `condition` holds for the default store of a backend: for a keyring only if it runs and is unlocked.
  static func has(_ name: BackendName, where condition: (any SecretBackend) throws(SecretError) -> Bool) -> Bool {
    let configuration = BackendConfiguration.current().unattended
    #if Keyring
    if name == .keyring {
      let environment = configuration.environmentWithoutKeys
      if KeyringBackend.probe(environment: environment, timeout: .seconds(1)).isLocked != false { return false }
    }
    #endif
    return (try? condition(configuration.backend(name))) ?? false  // a hint is not worth an error
  }
}
