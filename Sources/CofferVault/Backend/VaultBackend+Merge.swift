package import CofferCore

extension VaultBackend {
  /// Makes one vault of this one and of its copy at `path`, such as that of another branch. `VaultMerging` specifies
  /// how. Returns what came from the copy, which is not changed.
  ///
  /// `ancestor` is the path of the file from which both come, as version control systems give it. A file that is none is
  /// ignored. What the copy takes away without a change that says so is taken away only with `takingBack`.
  ///
  /// Throws `.unexpectedVault` if the file is not a copy of this vault, `.unexpectedKey` if it has another master key,
  /// `.rolledBack` if the two have no recent change in common, `.tooLarge` at a limit of the format, and an error of
  /// the vault. If it throws, nothing was changed.
  @discardableResult
  package func merge(
    with path: String, ancestor: String? = nil, takingBack: Bool = false
  ) throws(SecretError) -> MergeReport {
    try withSession { session throws(SecretError) in
      try session.merge(
        LocalMedium(path: path, environment: environment),
        ancestor: ancestor.map { LocalMedium(path: $0, environment: environment) }, takingBack: takingBack,
        unlocking)
    }
  }
}
