internal import Coffer
internal import CofferSystem
internal import Synchronization

/// The vaults that this process uses, and notes about their files.
enum VaultNotes {
  private static let vaults = Mutex<[VaultBackend]>([])

  /// Registers a vault whose notices ``print()`` prints if it is used.
  static func register(_ vault: VaultBackend) {
    vaults.withLock { $0.append(vault) }
  }

  /// Prints what a person should know of the vaults that were used, and forgets them.
  static func print() {
    let used = vaults.withLock { vaults in
      defer { vaults = [] }
      return vaults
    }
    for vault in used {
      do throws(SecretError) {
        if let notices = try vault.lastNotices() { print(notices, of: vault.path) }
      } catch {
        // Another thread uses the vault. The notes are not worth a failure.
      }
    }
  }

  /// Says which of the secrets have another value, because a merge had to choose.
  static func noteConflicts(among secrets: some Sequence<Secret>) {
    for name in secrets.filter(\.isInConflict).map(\.identifier).sorted() {
      note(
        "secret: “\(name.account)” was changed on both sides of a merge, and this is one of its values. To choose: secret history, "
          + "then secret restore or secret set.")
    }
  }

  static func noteCopy(_ backend: any SecretBackend) {
    do throws(SecretError) {
      guard let vault = backend as? VaultBackend, let note = try copyNote(vault) else { return }
      inform("secret: The vault \(vault.path) \(note.text). \(note.advice)")
    } catch {}  // the command has succeeded
  }

  /// The note for a vault that is a copy of another one, but not another checkout of it.
  static func copyNote(_ vault: VaultBackend) throws(SecretError) -> (text: String, advice: String)? {
    guard let other = try vault.otherCopy(),
      try !vault.notices().contains(.versioned) || Path.name(of: vault.path) != Path.name(of: other)
    else { return nil }
    return (
      "is a copy of \(other): both have the same id, and one can be put in the place of the other",
      "To make a separate vault, run secret init --vault NEW, and fill it: secret copy --from \("vault:\(vault.path)".quotedForShell) "
        + "--to vault:NEW"
    )
  }

  /// Says that several machines may change the vault without locks.
  static func noteSharing(_ path: String) {
    if let sharing = FileSystemKind(of: path)?.sharing {
      note("secret: The vault \(path) \(sharing.text). \(sharing.advice)")
    }
  }

  /// Says what the notice means, if every command says it.
  static func say(_ notice: VaultNotice, of path: String) {
    guard let words = notice.words else { return }
    var advice = words.advice
    if notice == .behind {
      advice = "If it is right as it is: secret trust."
      if BackendConfiguration.current().isInWorkTree(path) { advice? += " If not: git log -- \(path.quotedForShell)" }
    }
    note("secret: The vault \(path): \(words.text).\(advice.map { " \($0)" } ?? "")")
  }

  static func informOfPolicy(of path: String) {
    inform(
      """
      secret: The vault \(path) is in a git work tree, so earlier states of it are accepted from now on, but no other vault \
      and no former key. To refuse them: secret trust --policy strict
      """)
  }

  private static func print(_ notices: Set<VaultNotice>, of path: String) {
    for notice in VaultNotice.allCases where notices.contains(notice) {
      // A state that was met before is said by doctor and verify.
      if notice != .behind { say(notice == .behindAnew ? .behind : notice, of: path) }
    }
    let isWritable = !notices.contains(.readOnly)
    if notices.contains(.firstUse) && isWritable { noteSharing(path) }
    if notices.isSuperset(of: [.firstUse, .versioned]) && Output.messages.isTerminal { informOfPolicy(of: path) }
    if notices.contains(.readableByOthers) && isWritable && !notices.contains(.versioned)
      && !BackendConfiguration.current().isInWorkTree(path)
    {
      inform("secret: Other users can read the file \(path). Its content is encrypted. Run chmod 600 on it.")
    }
  }
}

extension VaultNotice {
  /// What every command prints for the notice, or `nil` if only some commands print it.
  var words: (text: String, advice: String?)? {
    switch self {
    case .recovered:
      (
        "one of its two commit slots was damaged, and the other one was used: the last change may be missing",
        "Check what you stored last. A change repairs the slot."
      )
    case .recordDamaged:
      ("one half of the record of what was seen of the vault was damaged, and is repaired", nil)
    case .unrecorded:
      (
        "what was seen of the vault cannot be recorded, so a later run may not notice an older copy",
        "Another process may have locked the record. Otherwise make a private directory for it, at XDG_STATE_HOME or ~/.local/state."
      )
    case .behind:
      (
        "its file is older than, or another branch of, what this machine has seen of it, or too far from it to tell",
        "A backup, or a checkout of another commit, is enough for that. If a pull, a revert or a copy brought it: git log -- FILE lists the "
          + "commits, and git show COMMIT:FILE | secret merge - brings back what the file of a commit has. If it is right as it is: secret trust."
      )
    case .behindAnew, .firstUse, .versioned, .countsOnlyHere, .readOnly, .readableByOthers: nil
    }
  }
}

extension FileSystemKind {
  /// The warning if several machines can change a vault here at the same time, or `nil` if only one can.
  var sharing: (text: String, advice: String)? {
    let loss = "two machines that change the vault at the same time can lose changes that were reported as done"
    let advice = "Change the vault on one machine at a time, or give each its own copy, as with git."
    return switch self {
    case .fuse:
      ("is on FUSE, such as sshfs, which usually has no locks between machines. Without locks, \(loss)", advice)
    case .network(let name):
      ("is on a network file system (\(name)). If it has no locks between machines, \(loss)", advice)
    default: nil
    }
  }
}
