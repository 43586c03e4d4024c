internal import ArgumentParser
internal import Coffer

/// The options of a command that another program runs: which store. The service is that program's to say.
struct StoreOptions: ParsableArguments {
  @Option(help: "The store to use: keyring or vault. Default: what `secret doctor` says.")
  var backend: BackendName?

  @Option(help: ArgumentHelp("The vault file to use; implies --backend vault.", valueName: "path"))
  var vault: String?

  /// The store to work on. Opens nothing yet.
  func store() throws -> any SecretBackend {
    var options = GlobalOptions()
    options.backend = backend
    options.vault = vault
    options.service = nil
    return try options.store()
  }
}
