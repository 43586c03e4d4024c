#if Keyring
internal import Coffer

extension Diagnosis {
  /// Examines the session bus, the keyring on it and the collection with that alias or label, or the default one. Each
  /// step is taken only if the one before was good.
  mutating func examineKeyring(_ collection: String?) {
    let status = KeyringBackend.probe(environment: configuration.environmentWithoutKeys, collection: collection)
    guard status.isBusReachable else {
      let absence = SecretError(
        .unavailable, "There is no session bus, so no keyring can be reached.", advice: "Use another backend.")
      return add("bus", status.problem ?? absence)
    }
    add(.ok, "bus", "\(status.busAddress ?? "the session bus") responds")
    if let problem = status.problem { return add("keyring", problem) }
    guard status.isServiceRunning else {
      if status.isServiceActivatable { return add(.ok, "keyring", "a keyring is not running, but can be started") }
      return add(
        "keyring",
        SecretError(
          .unavailable, "No keyring runs on the session bus, and the bus cannot start one.",
          advice: "Start a Secret Service on the session bus."))
    }
    add(.ok, "keyring", "a keyring is running")
    if status.isWrittenLater {
      add(
        .note, "keyring", "KWallet answers before it writes, so a change is lost if it is killed within some seconds",
        "Store a secret that must not be lost in a vault.")
    }
    guard status.isLocked != true else {
      let label = status.collection ?? ""
      if status.mayPrompt {
        return add(
          .note, "keyring", "the collection “\(label)” is locked; the keyring will prompt",
          "Unlock it, or answer the prompt.")
      }
      return add(
        .bad, "keyring", "The collection “\(label)” is locked, and a prompt is not possible.",
        "Unlock it in the desktop session, or use another backend.", status: .refused)
    }
    if let label = status.collection {
      add(.ok, "keyring", "the collection “\(label)” is unlocked")
    } else {
      add(.note, "keyring", "there is no default collection; storing the first secret creates it")
    }
    examineContents(of: BackendSelection(.keyring, at: collection))
  }
}
#endif
