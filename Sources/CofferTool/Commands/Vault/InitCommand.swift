internal import ArgumentParser
internal import Coffer
internal import Glibc

struct InitCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "init",
    abstract: "Make a vault, and remember to use it.",
    discussion: """
      By default the vault gets a key file beside the configuration. COFFER_KEY and COFFER_KEY_FILE are used where \
      they are set, and a key file that exists already is used as it is. With --backend keyring no vault is made, \
      and the keyring is remembered as the store to use.
      """
  )

  @OptionGroup(title: "Global options") var global: GlobalOptions
  @OptionGroup(title: "Global options") var format: JSONOption

  @Option(help: ArgumentHelp("The key file to make, or to use if it exists.", valueName: "path"))
  var keyFile: String?

  @Flag(help: "Protect the vault with a passphrase instead: asked for, or from COFFER_PASSPHRASE_….")
  var passphrase = false

  private struct Report: Encodable {
    var backend: String
    var vault: String?
    var id: String?
    var keyFile: String?
    var madeKeyFile = false
    var recorded = false
  }

  func run() throws {
    if passphrase && keyFile != nil {
      throw Failure.usage("A vault is made with a key file or with a passphrase. Give one of the two.")
    }
    let configuration = CofferConfiguration.current()
    if try global.namedBackend() == .keyring { return try chooseKeyring(configuration) }

    let path = try Directory.absolute(global.vault ?? configuration.vaultPath)
    var status = stat()
    if lstat(path, &status) == 0 {
      throw SecretError(
        .alreadyExists,
        "There is something at \(path) already.",
        advice: "Use it as it is, or name another place with --vault."
      )
    }
    var report = Report(backend: "vault", vault: path)
    let credential = try NewCredential.chosen(by: self, configuration, vault: path)
    let made = try credential.makeKeyFile()
    do {
      try Directory.create(Directory.parent(of: path))
      try VaultBackend.create(at: path, credential: credential.credential())
    } catch {
      if let made { unlink(made.path) }
      throw error
    }
    report.madeKeyFile = made != nil
    do throws(SecretError) {
      try record(&report, credential.keyFile?.path, configuration)
    } catch {
      throw SecretError(
        error.code,
        "The vault \(path) was made, and that could not be recorded: \(error.reason)",
        advice: "Use it with --vault and COFFER_KEY_FILE, which need no record."
      )
    }
    if format.json { try Output.standard.json(report) }
    explain(report, credential)
  }

  /// Writes down where the key is and, for a vault in the usual place, that the vault is to be used.
  private func record(
    _ report: inout Report,
    _ keyFile: String?,
    _ configuration: CofferConfiguration
  ) throws(SecretError) {
    guard let path = report.vault else { return }
    let id = try VaultBackend.describe(path: path).id
    report.id = id
    if let keyFile {
      report.keyFile = keyFile
      try configuration.record(keyFile: keyFile, forVault: id)
    }
    if try path == defaultVaultPath() {
      try configuration.record(backend: .vault)
      report.recorded = true
    }
  }

  private func chooseKeyring(_ configuration: CofferConfiguration) throws {
    if passphrase || keyFile != nil {
      throw Failure.usage("A keyring has its own password: --key-file and --passphrase are for vaults.")
    }
    _ = try configuration.backend(.keyring)
    try configuration.record(backend: .keyring)
    if format.json { try Output.standard.json(Report(backend: "keyring", recorded: true)) }
    note(
      "The keyring is the store to use from now on. That is recorded in \(configuration.configurationFile)."
    )
  }

  /// Where the vault is looked for when no option and no variable says otherwise.
  private func defaultVaultPath() throws(SecretError) -> String {
    var environment: [String: String] = [:]
    for name in ["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"] { environment[name] = Environment.value(name) }
    return try Directory.absolute(CofferConfiguration(environment: environment).vaultPath)
  }

  private func explain(_ report: Report, _ credential: borrowing NewCredential) {
    note("Made the vault \(report.vault ?? "").")
    switch credential.kind {
    case .passphrase:
      note("It opens with the passphrase alone. Whoever forgets it has lost what is in the vault.")
    case .environment:
      note("It opens with the key in COFFER_KEY. Keep a copy of it: without it the secrets are lost.")
    case .file(let file):
      note(
        report.madeKeyFile
          ? "Its key is in \(file.path), readable by you alone."
          : "It opens with the key that was in \(file.path) already."
      )
      note(
        "Protected: copies of the vault without the key, such as backups, shared folders and repositories."
      )
      note("Not protected: whoever can read both files, such as root and every program you run.")
      note("Keep a copy of the key file elsewhere: without it the secrets are lost.")
    }
    if report.recorded { note("The vault is the store to use from now on. Next: secret set NAME") }
  }
}
