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

  static func rolledBack(path: String, seen: Checkpoint, found: Checkpoint) -> SecretError {
    SecretError(
      .rolledBack,
      "The vault at \(path) is at change \(found.sequence), and change \(seen.sequence) was seen before.",
      advice: "An older copy was put in its place: restore the newest copy, or accept this one.")
  }
}
