public import CofferCore
internal import CofferVaultFormat

/// A copy of a vault, to be merged.
public struct VaultCopy: Sendable {
  let file: any MediumFile

  /// Opens the file at `path`. Throws `.vaultNotFound`, `.notAVault`, `.denied` or `.io`.
  public init(at path: String) throws(SecretError) {
    file = try LocalMedium(path: path, environment: VaultEnvironment()).open()
  }

  /// The bytes of a file. `name` is for messages.
  public init(_ bytes: SecretBytes, named name: String) { file = VaultImage(bytes, path: name) }

  package init(_ file: any MediumFile) { self.file = file }
}

extension VaultBackend {
  /// Returns what ``merge(with:ancestor:takingBack:previewed:)`` would do now, and changes nothing. Throws the same
  /// errors, and what the comparison with `pin`, a pin of the copy, throws, if it is given.
  package func mergePreview(with copy: VaultCopy, pin: String? = nil) throws(SecretError) -> MergeReport {
    let pins = try VaultPins(pin.map { [$0] } ?? [])
    return try withSession { session throws(SecretError) in
      try session.read(unlocking) { vault throws(SecretError) in
        let (merge, report) = try session.merge(vault, copy, ancestor: nil, takingBack: false)
        try pins.requireIdentity(merge.theirs.file)
        guard try pins.areShown(by: merge.theirs) else {
          throw .unverifiable(
            path: merge.theirs.file.path, "the state of the pin is older than the states that it still lists",
            advice: "Give a later pin of the copy.")
        }
        return report
      }
    }
  }

  /// Makes one vault of this one and of a copy of it, such as that of another branch. `VaultMerging` specifies how.
  /// Returns what came from the copy, which is not changed.
  ///
  /// `ancestor` is the file from which both come, as version control systems give it. A file that is none is ignored.
  /// What the copy takes away without a change that says so is taken away only with `takingBack`.
  ///
  /// Throws `.unexpectedVault` if the file is not a copy of this vault, `.unexpectedKey` if it has another master key,
  /// `.rolledBack` if the two have no recent change in common, `.tooLarge` at a limit of the format, and an error of
  /// the vault. If it throws, nothing was changed, unless the error says that the change is in the vault and only the
  /// last barrier failed.
  @discardableResult
  public func merge(
    with copy: VaultCopy, ancestor: VaultCopy? = nil, takingBack: Bool = false
  ) throws(SecretError) -> MergeReport {
    try merge(with: copy, ancestor: ancestor, takingBack: takingBack, previewed: nil)
  }

  /// Does the same if the copy is still in the state of `previewed`. Otherwise throws `.conflict`.
  package func merge(
    with copy: VaultCopy, ancestor: VaultCopy? = nil, takingBack: Bool, previewed: MergeReport?
  ) throws(SecretError) -> MergeReport {
    try withSession { session throws(SecretError) in
      try session.merge(
        with: copy, ancestor: ancestor, takingBack: takingBack, previewed: previewed, unlocking)
    }
  }

  /// Writes the vault anew in a state that is far above its own and lists none before. Every machine accepts it, also
  /// one that saw changes which are lost since. `pin` is that of the present state: otherwise throws `.conflict`.
  /// Returns the new pin. Throws an error of the vault.
  package func advance(from pin: String) throws(SecretError) -> String {
    try withSession { session throws(SecretError) in
      try session.rewrite(unlocking) { vault, changes throws(SecretError) in
        guard VaultPin(vault).description == pin else {
          throw SecretError(
            .conflict, "The vault at \(path) is not in the state of the pin.",
            advice: "Nothing was changed. secret verify prints the pin of its present state.")
        }
        changes.advances = true
      }
    }
    return try self.pin()
  }
}
