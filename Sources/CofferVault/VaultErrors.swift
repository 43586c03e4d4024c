internal import CofferCore
internal import CofferSystem
internal import CofferVaultFormat
internal import Glibc

extension SecretError {
  /// The error for a failed system call on the vault at `path`. `action` is a verb for the message.
  static func io(_ error: FileSystemError, _ action: String, path: String) -> SecretError {
    let text = String(cString: strerror(error.number))
    switch error.number {
    case ENOENT, ENOTDIR:
      return SecretError(
        .vaultNotFound, "There is no vault at \(path).",
        advice: "Check the path, or create the vault.")
    case ELOOP:
      // Resolved links were followed before: this one leads nowhere, or was created in the meantime.
      return SecretError(
        .vaultNotFound, "The link at \(path) leads to no vault.",
        advice: "Make the vault, or correct the link.")
    case EISDIR, ENXIO, ENODEV:
      return .notAVault(path: path)
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
        .io, "Too many files are open to \(action) the vault at \(path).", advice: "Close some and try again."
      )
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

  static func notAVault(path: String) -> SecretError {
    SecretError(
      .notAVault, "The file at \(path) is not a vault.", advice: "Check the path; nothing was changed.")
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
      advice: "\(cause), confirm it by trusting the vault again.")
  }

  static func unexpectedVault(path: String) -> SecretError {
    SecretError(
      .unexpectedVault, "The vault at \(path) is not the one that was seen there before.",
      advice: "Another vault replaced it. If that was you, confirm it by trusting the vault again.")
  }

  static func unexpectedKey(path: String) -> SecretError {
    SecretError(
      .unexpectedKey,
      "The vault at \(path) has a master key that does not follow from the one that was seen before.",
      advice:
        "A copy from before a key was removed may have replaced it. If that was you, or if the master key was "
        + "changed more than \(Layout.maximumLineage) times since, confirm it by trusting the vault again.")
  }

  static func unverifiable(path: String, _ what: String) -> SecretError {
    SecretError(
      .unverifiable, "The vault at \(path) cannot be checked against what was seen of it: \(what).",
      advice: "If you know that the vault is the right one, confirm it by trusting the vault again.")
  }
}
