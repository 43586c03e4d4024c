internal import ArgumentParser
internal import Coffer
internal import CofferSystem

struct InitCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "init", abstract: "Create a vault. At the default path, it becomes the backend to use.",
    discussion: """
      By default, the vault gets a key file in the configuration directory. Uses COFFER_KEY or COFFER_KEY_FILE if it is \
      set, and an existing key file as it is. With --recipient, the identity of that recipient opens it, see secret key new; \
      and a key file only if --key-file names it. With --portal, in a Flatpak, the Secret portal opens the vault, and a \
      recovery key is printed once: write it down. With --backend keyring, creates no vault and records the keyring as the \
      backend to use. With --backend vault, records a vault that exists. Older states of a vault are refused, except in a \
      git work tree: see secret trust. A key file in a git work tree is refused, unless git ignores it.
      """)

  @OptionGroup(title: "Global options") var global: GlobalOptions
  @OptionGroup(title: "Global options") var format: JSONOption

  @Option(path: "The key file to create, or to use if it exists.")
  var keyFile: String?

  @OptionGroup var recipients: RecipientOptions

  @Flag(help: "Protect the vault with a passphrase instead, from a prompt or COFFER_PASSPHRASE_….")
  var passphrase = false

  @OptionGroup var cost: NewPassphrase

  @Flag(help: "Let the Secret portal open the vault instead, in a Flatpak. Prints a recovery key.")
  var portal = false

  @Flag(help: "Let git in this clone merge and compare the vault, which may exist.")
  var git = false

  @Flag(help: "Accept a key file that a commit to the git work tree around it may publish.")
  var force = false

  private var configuration: BackendConfiguration { .current() }

  func run() throws {
    if [passphrase, keyFile != nil, portal].count(where: \.self) > 1 {
      throw Failure.exclusive("--key-file, --passphrase and --portal")
    }
    if portal && recipients.isGiven {
      throw Failure.usage("--portal and --recipient exclude each other. Add the recipient later: secret key add")
    }
    if portal && format.json {
      throw Failure.usage("--portal prints the recovery key, and --json prints something else. Use one of them.")
    }
    let options = try cost.vaultOptions(isUsed: passphrase)
    let selected = try global.selection()
    if let selected, selected.name != .vault { return try choose(selected) }

    let path = try RemoteURL.place(selected?.place ?? configuration.vaultPath)
    try VaultCredential.requirePath(path, from: "The path of the vault")
    if git && !configuration.isInWorkTree(path) {
      throw Failure.usage(
        """
        --git is for a vault in a git work tree, and \(path) is in none. If its repository is elsewhere, as with dotfiles in \
        a bare one: \(GitWorkTree.settingsElsewhere(for: path))
        """)
    }
    if git && FileStatus(of: path)?.isRegular == true { return try prepareGit(for: path) }
    if try configuration.isTaken(path) {
      if global.backend != nil, !passphrase, keyFile == nil, !portal, !recipients.isGiven {
        let place = path == configuration.defaultVaultPath ? nil : path
        let id = try configuration.vault(at: path, credentials: []).description().id
        return try choose(BackendSelection(.vault, at: place), vault: path, id: id)
      }
      let existing = FileStatus(of: path)
      let isFile = existing?.isRegular == true || RemoteURL.isURL(path)
      let isEmpty = isFile && existing?.size == 0
      throw SecretError(
        .alreadyExists,
        "\(RemoteURL.isURL(path) ? "The vault" : "The path") \(path) already exists\(isEmpty ? ", and the file is empty" : "").",
        advice: isEmpty
          ? "An interrupted secret init may have left it. Remove it if you do not need it."
          : isFile
            ? "To use it: secret init --backend vault:\(path). Or choose another path with --vault."
            : "It is not a regular file. Choose another path with --vault.")
    }
    if portal { return try createPortalVault(at: path) }
    let recipients = try recipients.read()
    let credential = try NewCredential.chosen(by: self, recipients, vault: path)
    if credential.keyFile?.path == configuration.defaultKeyFile { try configuration.makeDirectory() }
    if let file = credential.keyFile?.path, !force {
      try GitWorkTree.requireIgnored(file, advice: "add it to .gitignore, or use --force.")
    }
    let created = try credential.createKeyFile()
    let isKnown: Bool
    do throws(SecretError) {
      if !RemoteURL.isURL(path) { try PrivateDirectory.create(Path.parent(of: path)) }
      isKnown = try credential.createVault(at: path, recipients, options)
    } catch {
      let vault = configuration.vault(at: path, credentials: [credential.source()])
      throw created?.failure(error, of: vault) ?? Self.failure(error, of: vault)
    }
    let isInRepository = configuration.isInWorkTree(path)
    let (id, isChosen) = try record(
      path, keyFile: credential.keyFile?.path, advice: "Select it with --vault and COFFER_KEY_FILE.")
    changed("The vault \(path) was created.")
    try format.print([
      "backend": "vault", "vault": path, "id": id, "keyFile": credential.keyFile?.path,
      "madeKeyFile": created != nil, "policy": isInRepository ? "versioned" : "strict", "recorded": isChosen,
    ])
    Self.explain(credential, at: path)
    if isChosen { Self.noteNext() }
    if !isKnown { VaultNotes.say(.unrecorded, of: path) }
    VaultNotes.noteSharing(path)
    if isInRepository { try prepareGit(for: path) }
    if isInRepository, created == nil, credential.keyFile?.path == configuration.defaultKeyFile {
      note(
        """
        Its key opens your other vaults too. Before you give the key to others, replace it by one of its own: secret key \
        add --key-file PATH, and secret key remove
        """)
    }
    if isInRepository { VaultNotes.informOfPolicy(of: path) }
  }

  /// Adds the attributes of the vault, and makes the settings of this clone or says which commands do.
  private func prepareGit(for path: String) throws {
    if let said = GitWorkTree.addAttributes(for: path) { note(said) }
    if git {
      try GitWorkTree.makeSettings(for: path)
      return inform("git merges and compares the vault in this clone.")
    }
    let missing = GitWorkTree.missingSettings(for: path)
    if !missing.isEmpty {
      inform("For git to merge and compare the vault, in each clone: secret init --git, or")
      for line in missing { inform("  \(line)") }
    }
  }

  private func createPortalVault(at path: String) throws {
    let recoveryKey = try configuration.createPortalVault(at: path)
    inform("Created the vault \(path).")
    // Printed before everything else, because the key is kept nowhere.
    do throws(SecretError) { try RecoveryKey.print(recoveryKey) } catch {
      throw SecretError(
        error.code,
        "The vault \(path) was created, but its recovery key could not be printed: \(error.reason)",
        advice: "Add another one with secret key add --recovery.")
    }
    inform("Write the key down and keep it elsewhere. If the keyring is reset: secret key recover --portal")
    let (_, isChosen) = try record(path, keyFile: nil, advice: "Select it with --vault.")
    inform("The Secret portal opens it with a secret in your keyring. Programs that read the keyring can open it too.")
    if isChosen { Self.noteNext() }
  }

  /// The error to report if the vault was not created, or if it was created but may not be on the disk yet.
  private static func failure(_ error: SecretError, of vault: VaultBackend) -> SecretError {
    if error.code == .outcomeUnknown {
      return SecretError(error.code, error.reason, advice: "Try secret verify before you repeat it.", effect: .unknown)
    }
    do throws(SecretError) { if try !vault.opens() { return error } } catch { return error }
    return SecretError(
      error.code,
      "\(error.reason) The vault \(vault.path) was created, but may be lost if the power fails now.",
      advice: "Check the disk, and then the vault with secret verify.", effect: .changed)
  }

  /// Records the key file's path. A vault at the default path becomes the backend to use, and `isChosen` is true.
  private func record(
    _ path: String, keyFile: String?, advice: String
  ) throws(SecretError) -> (id: String, isChosen: Bool) {
    do throws(SecretError) {
      let id = try configuration.vault(at: path, credentials: []).description().id
      if let keyFile { try configuration.record(keyFile: keyFile, forVault: id) }
      let isChosen = path == configuration.defaultVaultPath
      if isChosen { try configuration.record(backend: .vault) }
      return (id, isChosen)
    } catch {
      throw SecretError(
        error.code, "The vault \(path) was created, but could not be recorded: \(error.reason)",
        advice: advice, effect: .changed)
    }
  }

  /// Records the backend to use: a keyring, or a vault that exists.
  private func choose(_ selected: BackendSelection, vault: String? = nil, id: String? = nil) throws {
    if passphrase || keyFile != nil || portal || recipients.isGiven {
      throw Failure.usage(
        "--key-file, --passphrase, --portal and --recipient require a vault. Remove them, or use --backend vault.")
    }
    _ = try configuration.backend(selected.name, at: selected.place)
    try configuration.record(backend: selected.name, at: selected.place)
    try format.print([
      "backend": selected.description, "vault": vault, "id": id, "madeKeyFile": false, "recorded": true,
    ])
    inform("The \(selected) is now the backend to use, as recorded in \(configuration.configurationFile).")
    if selected.name == .vault { Self.noteKeyring() }
  }

  /// Says that secrets in the keyring stay there.
  private static func noteKeyring() {
    let hasSecrets = OtherStores.has(.keyring) { keyring throws(SecretError) in
      try !keyring.identifiers(inService: nil).isEmpty
    }
    if hasSecrets {
      inform("The secrets in your keyring stay there. To copy them: secret copy --from keyring --to vault")
    }
  }

  private static func explain(_ credential: borrowing NewCredential, at path: String) {
    inform("Created the vault \(path).")
    switch credential.kind {
    case .passphrase:
      inform("Only the passphrase opens it. Without the passphrase, the secrets are lost.")
    case .recipients:
      inform("Only the identities of its recipients open it: set COFFER_KEY_FILE to the file of yours.")
    case .environment:
      inform("The key that COFFER_KEY… gives opens it. Keep a copy of the key: without it, the secrets are lost.")
    case .file(let file, let isNew):
      inform(
        isNew
          ? "Its key is in \(file.path), which only you can read."
          : "The existing key in \(file.path) opens it.")
      inform("Protected: copies of the vault without the key, such as backups, shared folders and repositories.")
      inform("Not protected: the secrets from programs that can read both files, such as root's and your own.")
      inform("Keep a copy of the key file elsewhere: without it, the secrets are lost.")
    }
  }

  private static func noteNext() {
    inform("The vault is now the backend to use. Next: secret set NAME")
    noteKeyring()
  }
}
