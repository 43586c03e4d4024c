internal import Coffer
internal import CofferSystem
internal import FoundationEssentials
internal import CofferLibc
internal import Synchronization

extension Diagnosis {
  mutating func examineVault(_ path: String) {
    let used = Mutex<String?>(nil)
    let sources = configuration.credentials().map { source in
      VaultCredentialSource(source.name, mayPrompt: source.mayPrompt) { request throws(SecretError) in
        guard let credential = try source.credential(for: request.vault) else { return nil }
        used.withLock { $0 = source.name }
        return credential
      }
    }
    let vault = configuration.vault(at: path, credentials: sources)
    var id: String?
    do throws(SecretError) {
      let description = try vault.description()
      id = description.id
      if let engine = try vault.engine() { examineEngine(engine, path) } else { examineFile(path, description) }
      if examineKey(vault, description, source: { used.withLock { $0 } }), description.keySlots.count == 1 {
        add(
          .note, "key", "the vault has only one key slot; if its credential is lost, the secrets are lost",
          "To add a recovery key: secret key add --recovery")
      }
    } catch {
      add("vault", error)
    }
    if RemoteURL.isURL(path) { examineVariables() }
    let directory = Path.parent(of: path)
    guard let status = FileStatus(of: directory) else { return }  // reported above
    examineDirectory(directory, status, of: path)
    examineKeyFile(besides: directory, ofVault: id)
    examineVariables()

    do throws(SecretError) {
      try KernelKeyring().requireAvailable()
      add(.ok, "kernel keyring", "it can keep the vault unlocked")
    } catch {
      add(.note, "kernel keyring", "it cannot keep the vault unlocked: \(error.reason)", error.toolAdvice)
    }
  }

  private mutating func examineEngine(
    _ engine: (text: String, latency: Duration, clock: Duration, copy: String?), _ path: String
  ) {
    let milliseconds = Int((engine.latency / .milliseconds(1)).rounded(.up))
    add(.ok, "engine", "\(path) is on \(engine.text); it answers in \(milliseconds) ms")
    if let copy = engine.copy { add(.ok, "engine", "the sealed copy of this machine is \(copy)") }
    let difference = abs(Int(engine.clock / .seconds(1)))
    if difference >= 5 {
      add(
        .note, "clock", "the engine's clock differs by \(difference) seconds from this machine's",
        "Set the clock that is wrong. No lease is given while they differ.")
    }
  }

  private mutating func examineFile(_ path: String, _ description: VaultDescription) {
    let names = description.keySlots.map {
      $0.recipient != nil ? "an identity" : $0.kind.map { "a \($0)" } ?? "a credential of an unknown kind"
    }
    let kinds = names.indices.filter { names.firstIndex(of: names[$0]) == $0 }.map { names[$0] }
      .joined(separator: ", or ")
    if let weakness = description.keySlots.quantumWeakness {
      add(.note, "key", weakness, "Ask for hybrid recipients (secret key new), add them, and remove the others.")
    }
    let status = FileStatus(of: path)
    let isPrivate = status.map { $0.mode & 0o044 == 0 } ?? true
    if isPrivate || configuration.isInWorkTree(path) {
      let owner = status?.owner == geteuid() ? "only you" : "only its owner and root"
      let readers = isPrivate ? owner : "as usual in a git work tree, other users"
      add(.ok, "vault", "\(path) exists, \(readers) can read it, and it opens with \(kinds)")
    } else {
      add(
        .note, "vault", "\(path) exists, other users can read it, and it opens with \(kinds)",
        "Its content is encrypted. Run chmod 600 on it to change secrets.")
    }
  }

  /// Returns whether the vault can be opened, by a source of keys or by a prompt.
  private mutating func examineKey(
    _ vault: VaultBackend, _ description: VaultDescription, source: () -> String?
  ) -> Bool {
    do throws(SecretError) {
      try vault.unlock()
      add(.ok, "key", "the vault was opened with the credential from \(source() ?? "no source")")
      try examineMembers(vault, description)
      try examineCondition(vault)
      try examineClock(vault)
      try examineConflicts(vault)
      try examineExpiry(of: vault.items(inService: service))
    } catch {
      guard error.code == .locked, configuration.canPrompt, description.hasPassphrase else {
        add("key", error)
        return false
      }
      add(.ok, "key", "no credential source opens the vault, so commands will prompt for the passphrase")
    }
    return true
  }

  /// Says who can open the vault and who could.
  private mutating func examineMembers(_ vault: VaultBackend, _ description: VaultDescription) throws(SecretError) {
    let former = try vault.formerKeySlots().reversed()
    let slots = description.keySlots.map { "\($0.summary) since \($0.created.day)" }
    add(.ok, "key", "the vault opens with \(slots.listed(most: 10))")
    let removed = former.map { "\($0.slot.summary) until \($0.removed.day)" }
    if !removed.isEmpty { add(.ok, "key", "it opened with \(removed.listed(most: 10))") }
    if let last = former.first(where: { !$0.hasNewMasterKey }) {
      add(
        .note, "key",
        "the master key has not changed since the key slot \(last.slot.summary) was removed: whoever has its credential and "
          + "an earlier copy of the vault can read the vault", "To change the master key: secret rekey")
    }
  }

  /// Says how the vault is compared with what was seen of it before, and which damage does not prevent its use.
  private mutating func examineCondition(_ vault: VaultBackend) throws(SecretError) {
    let notices = try vault.notices()
    for notice in VaultNotice.allCases where notices.contains(notice) {
      if let words = notice.words {
        add(.note, notice == .recovered ? "vault" : "trust", words.text, words.advice)
      }
    }
    if notices.contains(.versioned) {
      add(
        .ok, "trust",
        "the policy is versioned: an older copy of the vault is accepted, but not another vault or a former key")
    } else if !notices.contains(.unrecorded) {
      add(.ok, "trust", "the policy is strict: an older copy of the vault is refused")
    }
    if let note = try VaultNotes.copyNote(vault) {
      add(.note, "trust", "the vault \(note.text)", note.advice)
    }
    if notices.contains(.countsOnlyHere) {
      add(
        .note, "trust",
        "the vault counts only at this path, because secret trust marked it as a copy: a removed key may read what is stored in it"
      )
    }
    if notices.contains(.readOnly) {
      let isOwn = FileStatus(of: vault.path)?.owner == geteuid()
      add(
        .note, "vault",
        "the vault can only be read, because its file \(isOwn ? "is on a read-only mount, or closed to writing" : "is not yours")"
      )
    }
  }

  /// The clock decides which secrets have expired and which earlier versions are old, and nothing else.
  private mutating func examineClock(_ vault: VaultBackend) throws(SecretError) {
    let now = Date()
    let later = try vault.items(inService: nil).filter { $0.metadata.modified ?? .distantPast > now }
    if let last = later.compactMap(\.metadata.modified).max() {
      let list = later.map { "“\(SecretReference.text(of: $0.identifier))”" }.listed(most: 10)
      add(
        .note, "clock",
        "the time is \(now.formatted(.iso8601)), but these secrets were changed later, up to "
          + "\(last.formatted(.iso8601)): \(list)",
        "Set the clock if it is wrong. If it is right, it was wrong at these changes: store the secrets again.")
    } else {
      add(.ok, "clock", "the time is later than the vault's last change")
    }
  }

  private mutating func examineConflicts(_ vault: VaultBackend) throws(SecretError) {
    let conflicts = try vault.items().filter(\.isInConflict).map { "“\(SecretReference.text(of: $0.identifier))”" }
    if conflicts.isEmpty { return }
    add(
      .bad, "vault", "a merge had to choose between values of these secrets: \(conflicts.listed(most: 10))",
      "Compare them with secret history, and choose one with secret restore or secret set.",
      status: .noSuchSecret)
  }

  private mutating func examineDirectory(_ directory: String, _ status: FileStatus, of path: String) {
    if status.mode & 0o022 != 0 && status.mode & UInt32(S_ISVTX) == 0 {
      add(
        .bad, "directory", "other users can write to \(directory), and replace the vault",
        "Run chmod go-w \(directory.quotedForShell).", status: .refused)
    } else if status.owner != geteuid() && status.owner != 0 {
      add(
        .note, "directory", "\(directory) belongs to another user, who can remove the vault",
        "Move the vault to a directory of your own.")
    } else {
      add(.ok, "directory", "only you can write to \(directory)")
    }
    let name = Path.name(of: path)
    let others = (try? Path.names(inDirectory: directory)) ?? []  // none if the directory cannot be read
    let count = others.count { NewFile.isTemporaryName($0, of: String(name)) }
    if count > 0 {
      add(
        .note, "directory", "\(directory) contains unfinished copies of the vault, from interrupted writes: \(count)",
        "They hold nothing that the vault lacks. The next rewrite removes them.")
    }
    // Syncthing inserts the mark before the last dot of a name.
    let stem = name.lastIndex(of: ".").map { name[..<$0] } ?? name[...]
    for other in others where other.hasPrefix("\(stem).sync-conflict-") {
      add(
        .note, "directory", "\(directory)/\(other) is the vault as another machine changed it at the same time",
        "To merge it: secret merge \("\(directory)/\(other)".quotedForShell) --vault \(path.quotedForShell). Then remove it. "
          + "If one of both has another master key, keep that in which a key was removed, and copy single secrets: secret copy"
      )
    }
    if let sentence = GitWorkTree.textSentence(path) {
      add(.bad, "git", sentence, status: .configuration)
    }
    if GitWorkTree.attributes(of: path) == .binary {
      add(
        .note, "git", "the attributes of \(path) do not let git merge and compare it, so each merge of two sides stops",
        "Run secret init --git, and commit .gitattributes.")
    } else if !GitWorkTree.missingSettings(for: path).isEmpty {
      add(.note, "git", "git in this clone cannot merge or compare the vault", "Run secret init --git.")
    }
    if GitWorkTree.tracks(path, isUnmerged: true) {
      add(
        .note, "git", "git lists \(path) as unmerged",
        "Look at secret list --conflicts. If this is the file of one side: git show :3:PATH | secret merge -; if the other "
          + "side has another master key, keep the file of the side that removed a key. Then run git add on the vault.")
    }
    let kind = FileSystemKind(of: path) ?? FileSystemKind(of: directory)
    switch kind {
    case .memory?:
      add(.note, "directory", "\(directory) is in memory, so a restart removes the vault", "Move the vault to a disk.")
    case .network?, .fuse?:
      if let sharing = kind?.sharing {
        add(.note, "directory", "\(directory) \(sharing.text)", sharing.advice)
      }
    case .overlay?:
      add(
        .note, "directory", "\(directory) is in a container's own layer, and is removed with the container",
        "Use a volume for the vault.")
    case .other?: add(.ok, "directory", "\(directory) is on a disk")
    case nil: break
    }
  }

  private mutating func examineKeyFile(besides directory: String, ofVault id: String?) {
    guard let id else { return }  // `examineVault` has reported why
    let recorded: String?
    do throws(SecretError) { recorded = try configuration.recordedKeyFile(forVault: id) } catch {
      return  // `examineKey` has reported it
    }
    guard let file = configuration.keyFile ?? recorded, let status = FileStatus(of: file) else { return }
    if let exposure = FileExposure(of: status) {
      add(.bad, "key file", "\(file) \(exposure.predicate)", exposure.advice, status: .refused)
    } else if GitWorkTree.tracks(file) {
      add(
        .bad, "key file", "\(file) is tracked by git, so that every clone contains the key",
        "Add another key with secret key add, and remove the slot of this one with secret key remove.",
        status: .refused)
    } else if Path.isSameFile(Path.parent(of: file), directory) {
      add(
        .note, "key file", "\(file) is in the vault's directory, so that a copy of the directory contains both",
        "Move one of them, and set COFFER_KEY_FILE.")
    } else {
      add(.ok, "key file", "only you can read \(file)")
    }
  }

  private mutating func examineVariables() {
    let set = configuration.set(of: BackendConfiguration.keyVariables)
    if set.count > 1 {
      add(
        .note, "environment",
        "several variables are set, and are tried in this order: \(set.joined(separator: ", "))",
        "Unset all but one.")
    } else if set == ["COFFER_KEY"] {
      add(
        .note, "environment", "the key is in COFFER_KEY, which every process of this user can read in /proc",
        "This is usual in CI; otherwise use COFFER_KEY_FILE.")
    }
  }
}
