internal import CofferCore
internal import CofferSystem
internal import CofferLibc

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
        advice: "Create the vault, or correct the link.")
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
        advice: "All changes that were reported as done are still in the vault.")
    }
  }

  static func outcomeUnknown(path: String, _ reason: String) -> SecretError {
    SecretError(
      .outcomeUnknown, "The change of the vault at \(path) was not confirmed: \(reason)",
      advice: "Read the secret before you repeat the change.", effect: .unknown)
  }

  /// The error for a change that counts but whose last barrier failed.
  static func unconfirmed(_ error: SecretError, path: String) -> SecretError {
    SecretError(
      .io, "The change is in the vault at \(path), but may be lost if the power fails now. \(error.reason)",
      advice: "Keep the old and the new credentials until you have checked the disk and changed the vault again.",
      effect: .changed)
  }

  static func notAVault(path: String) -> SecretError {
    SecretError(.notAVault, "The file at \(path) is not a vault.", advice: "Check the path.")
  }

  static func convertedLineEnds(path: String) -> SecretError {
    SecretError(
      .notAVault,
      "The line ends of the vault at \(path) were converted, as git does with a file that it takes for text.",
      advice:
        "This copy is lost: take one from before. Mark the file as binary in .gitattributes first.",
      remedy: .diagnosis
    )
  }

  /// The error for a vault that no new file can replace.
  static func mountedFile(path: String) -> SecretError {
    SecretError(
      .denied, "The vault at \(path) is itself a mount point, so no new file can replace it.",
      advice: "Secrets can be stored in it; to change its keys, mount its directory instead.")
  }
}
