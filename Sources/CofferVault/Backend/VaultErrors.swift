internal import CofferCore
internal import CofferSystem
internal import CofferVaultFormat
internal import Glibc

extension SecretError {
  /// The error for a failed system call on the vault at `path`. `action` is a verb for the message.
  static func io(_ error: FileSystemError, _ action: String, path: String) -> SecretError {
    if let link = error.refusedLink { return .refusedLink(link) }
    let text = String(cString: strerror(error.number))
    switch error.number {
    case ENOENT, ENOTDIR:
      return SecretError(
        .vaultNotFound, "There is no vault at \(path).",
        advice: "Check the path, or create the vault.")
    case ELOOP:
      // Links were resolved before: this one leads nowhere, or was created since.
      return SecretError(
        .vaultNotFound, "The link at \(path) leads to no vault.",
        advice: "Make the vault, or correct the link.")
    case EISDIR, ENXIO, ENODEV:
      return .notAVault(path: path)
    case ENOSYS where action == "lock", EOPNOTSUPP where action == "lock", ENOLCK:
      return SecretError(
        .io,
        "The file system of the vault at \(path) has no locks (flock), which keep programs from changing it at once: \(text).",
        advice: "Move the vault to another file system.")
    case EACCES, EPERM, EROFS:
      return SecretError(
        .denied, "The system does not let this user \(action) the vault at \(path): \(text).",
        advice: "Check the owner, the permissions of the directory, and whether it is mounted read-only.")
    case ENOSPC, EDQUOT, EFBIG:
      return SecretError(
        .io, "There is no room to \(action) the vault at \(path): \(text).",
        advice: "Everything stored before is still there; free some space and try again.")
    case EMFILE, ENFILE:
      return SecretError(
        .io, "There are not enough files to \(action) the vault at \(path): \(text).",
        advice: "Raise the limit (ulimit -n), or close some and try again.")
    case EEXIST:
      return SecretError(
        .alreadyExists, "There is already a file at \(path).",
        advice: "It was not changed; choose another path, or move the file.")
    default:
      return SecretError(
        .io, "The system failed to \(action) the vault at \(path): \(text).",
        advice: "Everything acknowledged before is still there.")
    }
  }

  /// The error for a new file that is in the vault's place, after the last barrier failed.
  static func unconfirmed(_ error: SecretError, path: String) -> SecretError {
    SecretError(
      .io, "The change is in the vault at \(path), but may be lost if the power fails now. \(error.reason)",
      advice:
        "Keep the old and the new credentials until you have checked the disk and changed the vault again.")
  }

  static func notAVault(path: String) -> SecretError {
    SecretError(
      .notAVault, "The file at \(path) is not a vault.", advice: "Check the path; nothing was changed.")
  }

  static func convertedLineEnds(path: String) -> SecretError {
    SecretError(
      .notAVault,
      "The line ends of the vault at \(path) were converted, as git does with a file that it takes for text.",
      advice:
        "This copy is lost: take one from before. Add a line to .gitattributes first: secret doctor prints it."
    )
  }

  /// The error for a vault that no new file can replace.
  static func mountedFile(path: String) -> SecretError {
    SecretError(
      .denied, "The vault at \(path) is itself a mount point, so no new file can replace it.",
      advice: "Secrets can be stored in it; to change its keys, mount its directory instead.")
  }

  /// `isRecovered`: one of the commit slots of what was found is damaged, which may explain it.
  static func rolledBack(
    path: String, seen: Checkpoint, found: Checkpoint, isRecovered: Bool = false
  ) -> SecretError {
    let found =
      found.sequence < seen.sequence
      ? "is at change \(found.sequence), and change \(seen.sequence) was seen before"
      : "has another history than the one that was seen before, up to change \(seen.sequence)"
    let damage = isRecovered ? " One of its two commit slots is damaged." : ""
    let cause =
      isRecovered
      ? "The damage may have taken the last change back, or an older copy replaced the vault. If you know that it "
        + "was the damage"
      : "An older or a diverging copy replaced it. If that was you"
    return SecretError(
      .rolledBack, "The vault at \(path) \(found).\(damage)",
      advice: "\(cause), \(confirming(path))")
  }

  static func unexpectedVault(path: String) -> SecretError {
    SecretError(
      .unexpectedVault, "The vault at \(path) is not the one that was seen there before.",
      advice: "Another vault replaced it. If that was you, \(confirming(path))")
  }

  static func unexpectedKey(path: String) -> SecretError {
    SecretError(
      .unexpectedKey,
      "The vault at \(path) has a master key that does not follow from the one that was seen before.",
      advice:
        "A copy from before a key was removed may have replaced it. If that was you, or if the master key was "
        + "changed more than \(Layout.maximumLineage) times since, \(confirming(path))")
  }

  /// The same, for a master key that was seen at another path, `other`.
  static func unexpectedKey(path: String, seenAt other: String) -> SecretError {
    SecretError(
      .unexpectedKey,
      "The vault at \(path) has another master key than the one that was seen of the same vault at \(other), and does not "
        + "follow from it.",
      advice:
        "A key that was removed may open one of the two, and which one cannot be told from the files. Compare the pin of "
        + "each with one that came by another way, and use the right one. If this is an older checkout, update it, as with "
        + "git pull. If it is this one, or a backup that is to be used "
        + "only here, \(confirming(path))")
  }

  static func untrusted(path: String, _ origin: DerivedKeys.Origin) -> SecretError {
    SecretError(
      .untrusted,
      origin == .recipient
        ? "The vault at \(path) was opened by an identity, and anyone can make a vault for its recipient."
        : "The vault at \(path) was not used at this path before, and was opened by a master key that was kept.",
      advice:
        "Nothing was read. If you know that the vault is the right one, give its pin, or \(confirming(path))"
    )
  }

  /// The end of the advice of an error if a person may confirm that the vault is the right one.
  private static func confirming(_ path: String) -> String {
    "confirm it: secret trust --vault \(path.quotedForShell)"
  }

  /// Whether a person may confirm that the vault is the right one.
  package var canBeConfirmed: Bool { advice?.contains("confirm it: secret trust --vault ") == true }

  /// The error for a directory of records that cannot be used. `what` says why.
  static func unusableRecords(vault: String, _ what: String) -> SecretError {
    .unverifiable(
      path: vault, what,
      advice: "Correct the directory, or set HOME or XDG_STATE_HOME to a directory of your own.")
  }

  /// The error if the record `file` of what was seen of the vault cannot be read, which says nothing about the vault. `nil` if
  /// `error` is another one than that of permissions or of the system.
  static func unread(_ error: SecretError, vault: String, _ file: String) -> SecretError? {
    guard [.denied, .io].contains(error.code) else { return nil }
    let failure = error.reason.split(separator: ": ").last ?? ""
    return SecretError(
      error.code, "What was seen of the vault at \(vault) cannot be read, in \(file): \(failure)",
      advice: "Correct that, or set HOME or XDG_STATE_HOME to a directory of your own.")
  }

  /// The error for a decision to trust a vault that cannot be recorded in `directory`.
  static func undecided(_ code: Code, vault: String, directory: String) -> SecretError {
    SecretError(
      code, "The decision to trust the vault at \(vault) cannot be recorded in \(directory).",
      advice: "That must be a directory of your own with mode 700, on a disk with free space.")
  }

  static func unverifiable(path: String, _ what: String, advice: String? = nil) -> SecretError {
    SecretError(
      .unverifiable, "The vault at \(path) cannot be checked against what was seen of it: \(what).",
      advice: advice ?? "If you know that the vault is the right one, \(confirming(path))")
  }
}
