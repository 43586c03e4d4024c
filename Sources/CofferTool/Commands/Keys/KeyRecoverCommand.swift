internal import ArgumentParser
internal import Coffer

struct KeyRecoverCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "recover", of: "secret key",
    abstract: "Open the vault with a recovery key, and add a key file or the Secret portal.",
    discussion: """
      The recovery key is entered on a terminal, or comes from a pipe; white space in it has no meaning. It remains \
      valid. The new key file is the default one, or --key-file, and is recorded for the vault. With --portal, in a \
      Flatpak, the Secret portal opens the vault again, after the user's keyring was reset.
      """)

  @OptionGroup(title: "Global options") var global: GlobalOptions

  @Option(path: "The key file to create, or to use if it exists.")
  var keyFile: String?

  @Flag(help: "Let the Secret portal open the vault again, in a Flatpak.")
  var portal = false

  func run() throws {
    if portal && keyFile != nil { throw Failure.exclusive("--key-file and --portal") }
    let selected = try global.openVault(requirement: "Only a vault has a recovery key")
    let configuration = BackendConfiguration.current()
    let text = try ValueInput.read("recovery key") { try Terminal().readLine("Recovery key: ") }
    let recoveryKey = try RecoveryKey.parse(text)
    if portal {
      try configuration.restorePortalVault(at: selected.path, recoveryKey: recoveryKey)
      return inform("The Secret portal now opens the vault, and the recovery key still does.")
    }
    let source = VaultCredentialSource("the recovery key", .key(recoveryKey))
    let vault = selected.with(credentials: [source])
    VaultNotes.register(vault)
    let editor = try KeySlotEditor(vault)
    try editor.vault.unlock()
    let added = try editor.addKeyFile(keyFile ?? configuration.defaultKeyFile, label: "")
    let isRecorded = try editor.record(keyFile: added.path)
    changed("The key in \(added.path) opens the vault now.")
    inform("The key in \(added.path) now opens the vault, and the recovery key still does.")
    if !isRecorded, let other = try editor.vault.otherCopy() {
      note(
        """
        This is a copy of the vault \(other), whose recorded key file stays. To open the copy: \
        COFFER_KEY_FILE=\(added.path)
        """)
    }
    inform("If another key was stolen, remove its slot: secret key list, and then secret key remove")
  }
}
