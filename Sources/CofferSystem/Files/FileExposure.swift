internal import CofferLibc

/// Why a file must not hold a key, a passphrase or a configuration: another user can read or change its contents.
///
/// The libraries, `init --key-file` and `doctor` use this one rule:
///
/// - The file belongs to the current user or to root.
/// - Group and others may not write it.
/// - If the current user, even root, owns a file with a secret, group and others may not read or execute it either. If
///   root owns it and the current user is not root, they may, because container runtimes mount secrets that way.
///
/// The kernel checks the permissions of the directories above the file; this rule does not.
package enum FileExposure: Hashable, Sendable {
  /// The file belongs to a user who is neither the current user nor root.
  case foreignOwner
  /// Group or others have a permission that the rule does not allow for a secret.
  case openToOthers
  /// Group or others may write a file that is not secret.
  case writableByOthers

  /// Returns `nil` if a file with this mode and owner is safe for `user`, by the rule above.
  package init?(mode: UInt32, owner: UInt32, user: UInt32, isSecret: Bool = true) {
    guard owner == user || owner == 0 else {
      self = .foreignOwner
      return
    }
    let forbidden: UInt32 = owner == user && isSecret ? 0o077 : 0o022
    if mode & forbidden == 0 { return nil }
    self = isSecret ? .openToOthers : .writableByOthers
  }

  /// Returns `nil` if a file with that status is safe for the current user.
  package init?(of status: FileStatus, isSecret: Bool = true) {
    self.init(mode: status.mode, owner: status.owner, user: geteuid(), isSecret: isSecret)
  }

  /// The predicate of a sentence about the file.
  package var predicate: String {
    switch self {
    case .foreignOwner: "belongs to another user"
    case .openToOthers: "is open to other users"
    case .writableByOthers: "can be changed by other users"
    }
  }

  /// What to do about it, as a sentence.
  package var advice: String {
    switch self {
    case .foreignOwner: "Use a file of your own with mode 0600."
    case .openToOthers:
      "Run chmod 600 on the file. If another user may have read it, replace the key or the passphrase."
    case .writableByOthers: "Check what it contains, and run chmod go-w on it."
    }
  }
}
