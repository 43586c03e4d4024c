internal import Glibc

/// Why a file is no place for a key or a passphrase: another user can read or replace what is in it.
///
/// The one rule, for the libraries, for `init --key-file` and for `doctor`:
///
/// - The file belongs to the current user or to root.
/// - If the current user owns it, root included, group and others have no permission at all.
/// - If root owns it and the current user is not root, group and others may read it, because container
///   runtimes mount secrets that way, but may not write it.
///
/// The kernel checks the permissions of the directories above the file; this rule does not.
package enum FileExposure: Hashable, Sendable {
  /// The file belongs to a user who is neither the current user nor root.
  case foreignOwner
  /// Group or others have a permission that the rule does not allow.
  case openToOthers

  /// Returns `nil` if the file of that mode and owner is private for `user`, by the rule above.
  package init?(mode: UInt32, owner: UInt32, user: UInt32) {
    guard owner == user || owner == 0 else {
      self = .foreignOwner
      return
    }
    let forbidden: UInt32 = owner == user ? 0o077 : 0o022
    if mode & forbidden == 0 { return nil }
    self = .openToOthers
  }

  /// Returns `nil` if a file with that status is private for the current user.
  package init?(of status: FileStatus) {
    self.init(mode: status.mode, owner: status.owner, user: geteuid())
  }

  /// What a sentence says about the file.
  package var predicate: String {
    switch self {
    case .foreignOwner: "belongs to another user"
    case .openToOthers: "is open to other users"
    }
  }

  /// What to do about it, as a sentence.
  package var advice: String {
    switch self {
    case .foreignOwner: "Use a file of your own with mode 0600."
    case .openToOthers:
      "Run chmod 600 on it, and replace the key if another user may have read it."
    }
  }
}
