extension VaultEnvironment {
  /// The place of the vault at `path`, which may be a URL, and this environment as it suits the place.
  package func place(_ path: String, _ options: VaultOptions) -> (
    medium: any VaultMedium, environment: VaultEnvironment
  ) {
    var environment = self
    guard RemoteURL.isURL(path) else {
      // A pin says whether it is the right vault, and of a backup a person decides.
      environment.readsFilesOfOthers = !options.pins.isEmpty || options.isBackup
      return (LocalMedium(path: path, environment: environment), environment)
    }
    // Many machines ask one engine, and not all at once.
    environment.watchPeriod = watchPeriod * (512 + Int(randomness.array(1)[0])) / 256
    // What is read and sent as a whole should not have a tail that is longer than the rest.
    environment.compactionThreshold = 1 << 16
    return (RemoteMedium(url: path, options: options, environment: environment), environment)
  }
}
