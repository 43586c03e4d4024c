package import CofferCore
internal import CofferVaultFormat

/// The bytes of a copy of a vault, to be merged.
package struct VaultCopy: Sendable {
  let image: VaultImage

  /// Reads the file at `path`, whoever owns it: a person or a pin decides about the merge. Throws `.vaultNotFound`,
  /// `.notAVault`, `.denied` or `.io`.
  package init(at path: String) throws(SecretError) {
    var environment = VaultEnvironment()
    environment.readsFilesOfOthers = true
    try self.init(of: LocalMedium(path: path, environment: environment).open())
  }

  package init(of file: any MediumFile) throws(SecretError) { image = try VaultImage(of: file) }

  /// The bytes of a file. `name` is for messages.
  package init(_ bytes: [UInt8], named name: String) { image = VaultImage(bytes, path: name) }
}

extension VaultBackend {
  /// Returns what ``merge(with:ancestor:undoing:previewed:)`` would do now, and changes nothing. Throws the same
  /// errors, and `.conflict` if `pin` is given and is not the pin of the copy. With `isReversed`, what a merge of this
  /// vault into the copy would do.
  package func mergePreview(
    with copy: VaultCopy, ancestor: VaultCopy? = nil, undoing: Bool = false, isReversed: Bool = false,
    pin: String? = nil
  ) throws(SecretError) -> MergeReport {
    try withSession { session throws(SecretError) in
      try session.read(unlocking) { vault throws(SecretError) in
        if isReversed {
          let (copy, vault) = try (session.openCopy(copy, of: vault), VaultCopy(of: vault.file.storage))
          return try session.merge(copy, vault, ancestor: nil, undoing: false).report
        }
        let (merge, report) = try session.merge(vault, copy, ancestor: ancestor, undoing: undoing)
        if let pin { try merge.theirs.require(pin) }
        return report
      }
    }
  }

  /// Makes one vault of this one and of a copy of it, such as that of another branch. `VaultMerging` specifies how.
  /// Returns what came from the copy, which is not changed.
  ///
  /// `ancestor` is needed to take only what one commit did, which changed it to the copy. With `undoing`, what the
  /// commit did that changed the copy to `ancestor` is undone, and nothing else comes.
  ///
  /// Throws `.unexpectedVault` if a file is not a copy of this vault, `.unexpectedKey` if it has another master key,
  /// `.rolledBack` if the two have no recent change in common, `.conflict` if the copy has removed the key slot that
  /// opened this vault, `.tooLarge` at a limit of the format, and an error of the vault. If it throws, nothing was
  /// changed, unless the error says that the change is in the vault and only the last barrier failed.
  ///
  /// With `previewed`, merges if the vault is still in the state of that preview, also if the key slot that opened the
  /// vault is removed. Otherwise throws `.conflict`.
  @discardableResult
  package func merge(
    with copy: VaultCopy, ancestor: VaultCopy? = nil, undoing: Bool = false, previewed: MergeReport? = nil
  ) throws(SecretError) -> MergeReport {
    try withSession { session throws(SecretError) in
      try session.merge(with: copy, ancestor: ancestor, undoing: undoing, previewed: previewed, unlocking)
    }
  }

  /// For a file that is about to get these names in a work tree. `isStrict`: a record of the vault at a path in the
  /// work tree has the policy strict. `isBehind`: the file does not show the state that was seen last at one of the
  /// names, or, if nothing was seen there, the newest state that was seen of the vault.
  package func compare(
    at names: [String], below workTree: String?
  ) throws(SecretError) -> (isStrict: Bool, isBehind: Bool) {
    try withUnconfirmed { known, vault throws(SecretError) in try known.compare(vault, at: names, below: workTree) }
  }

  /// Records the state of this file, a merge that is about to get these names, in those of their records whose state
  /// the file shows.
  package func recordMerge(at names: [String]) throws(SecretError) {
    try withUnconfirmed { known, vault throws(SecretError) in try known.recordMerge(vault, at: names) }
  }

  /// Writes the vault anew in a state that is far above its own and lists none before. Every machine accepts it, also
  /// one that saw changes which are lost since. `pin` is that of the present state: otherwise throws `.conflict`.
  /// Returns the new pin. Throws an error of the vault.
  package func advance(from pin: String) throws(SecretError) -> String {
    try withSession { session throws(SecretError) in
      try session.rewrite(unlocking) { vault, changes throws(SecretError) in
        try vault.require(pin)
        changes.advances = true
      }
    }
    do throws(SecretError) { return try self.pin() } catch { throw error.with(.changed) }
  }
}

extension VaultSnapshot {
  /// Throws `.configuration` if `pin` is no pin, and `.conflict` unless it is that of the present state.
  fileprivate func require(_ pin: String) throws(SecretError) {
    if try VaultPin(pin) == VaultPin(self) { return }
    throw SecretError(
      .conflict, "The vault at \(file.path) is not in the state of the pin.",
      advice: "secret verify prints the pin of its present state.")
  }
}
