internal import CofferCore
internal import CofferVaultFormat

extension SecretError {
  /// The error for a record whose lookup id does not belong to its names.
  static var foreignLookupID: SecretError { .tampered("a record has another name's lookup id") }

  /// The error for a copy that shows no state which the vault shows too.
  static func partedTooLongAgo(path: String) -> SecretError {
    SecretError(
      .rolledBack, "The vault and its copy at \(path) have no recent change in common, so they cannot be merged.",
      advice: "Copy single secrets instead.")
  }

  /// `isRecovered`: a commit slot of the file is damaged, which may explain why the state is older. `isNewPlace`: the
  /// newer state was seen at another path.
  static func rolledBack(
    path: String, seen: Checkpoint, found: Checkpoint, isRecovered: Bool = false, isNewPlace: Bool = false
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
      : isNewPlace
        ? "The vault was used at another path, and this file is an older copy or another branch of it. If you want to use it here"
        : "An older or a diverging copy replaced it. If that was you"
    return SecretError(
      .rolledBack, "The vault at \(path) \(found).\(damage)",
      advice: "\(cause), accept the vault as it is.", remedy: .trust(path: path))
  }
}
