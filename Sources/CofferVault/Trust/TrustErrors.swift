internal import CofferCore
internal import CofferVaultFormat

extension SecretError {
  static func unexpectedVault(path: String) -> SecretError {
    SecretError(
      .unexpectedVault, "The vault at \(path) is not the one that was seen there before.",
      advice: "Another vault replaced it. If that was you, accept the vault as it is.",
      remedy: .trust(path: path))
  }

  static func unexpectedKey(path: String) -> SecretError {
    SecretError(
      .unexpectedKey, "The vault at \(path) has a master key that does not follow from the one that was seen before.",
      advice:
        "A copy from before a key was removed may have replaced it. If that was you, or if the master key was "
        + "changed more than \(Layout.maximumLineage) times since, accept the vault as it is.",
      remedy: .trust(path: path))
  }

  /// The error if a different master key of the vault was seen at another path, `other`.
  static func unexpectedKey(path: String, seenAt other: String) -> SecretError {
    SecretError(
      .unexpectedKey,
      "The vault at \(path) has another master key than the one that was seen of the same vault at \(other), and does not "
        + "follow from it.",
      advice:
        "A key that was removed may open one of the two, and which one cannot be told from the files. Compare the pin of "
        + "each with one that came by another way, and use the right one. If this is an older checkout, update it, as with "
        + "git pull. If it is this one, or a backup that is to be used "
        + "only here, accept the vault as it is.",
      remedy: .trust(path: path))
  }

  static func untrusted(path: String, isRemote: Bool, _ origin: DerivedKeys.Origin) -> SecretError {
    SecretError(
      .untrusted,
      isRemote
        ? "The vault at \(path) was not used on this machine before, and whoever runs the engine may have put an older one there."
        : origin == .recipient
          ? "The vault at \(path) was opened by an identity, and anyone can make a vault for its recipient."
          : "The vault at \(path) was not used at this path before, and was opened by a master key that was kept.",
      advice:
        "Nothing was read. If you know that the vault is the right one, give its pin, or accept the vault as it is.",
      remedy: .trust(path: path)
    )
  }

  /// The error for a directory of records that cannot be used. `what` says why.
  static func unusableRecords(vault: String, _ what: String) -> SecretError {
    .unverifiable(
      path: vault, what,
      advice: "Correct the directory, or set HOME or XDG_STATE_HOME to a directory of your own.")
  }

  /// The error if the record or the directory `file` cannot be read, which says nothing about the vault. `nil` unless
  /// `error` is one of permissions or of the system.
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
      advice: advice ?? "If you know that the vault is the right one, accept it as it is.",
      remedy: advice == nil ? .trust(path: path) : nil)
  }
}
