package import CofferCore
package import FoundationEssentials

/// What a merge found.
package struct MergeReport: Sendable {
  /// What became of the vault.
  package enum Outcome: Sendable {
    /// The other copy is older, or the same. Nothing was changed.
    case unchanged
    /// The copy has all that the vault has, and later changes. It took the place of the vault.
    case replaced
    /// The vault has the changes of both.
    case merged
  }

  /// What theirs has of one secret.
  package struct Change: Sendable {
    /// The name of the secret.
    package let identifier: SecretIdentifier
    /// The metadata of the present value in theirs, or `nil` if theirs has no present value.
    package let metadata: SecretMetadata?
    /// When theirs changed the secret, or, if that is undone, when ours did.
    package let date: Date
    /// Whether ours had removed the secret, without knowing this value.
    package let isOverRemoval: Bool

    init(_ identifier: SecretIdentifier, _ value: MergedRecord?, at date: Date, isOverRemoval: Bool = false) {
      (self.identifier, metadata, self.date, self.isOverRemoval) = (identifier, value?.metadata, date, isOverRemoval)
    }
  }

  /// A secret that one side has renamed.
  package struct Renaming: Sendable {
    /// The names before and after.
    package let former, present: SecretIdentifier
    /// Whether the other side has stored another value under the former name, so that both names are there.
    package let isConflict: Bool
  }

  /// The secrets that are as theirs has them, because theirs changed them.
  package internal(set) var changes: [Change] = []
  /// The secrets that have several values after the merge, of which the vault did not have all before.
  package internal(set) var conflicts: [SecretIdentifier] = []
  /// The secrets that theirs has removed and that stay, because ours has stored another value since.
  package internal(set) var kept: [SecretIdentifier] = []
  /// The secrets that one side has renamed since the other one was copied.
  package internal(set) var renamings: [Renaming] = []
  /// The secrets of which ours had a present or earlier value, and the merge has none.
  package internal(set) var erased: [SecretIdentifier] = []
  /// The secrets of which theirs has dropped earlier versions, although the history limit has room for them; and the
  /// secrets of ``erased`` that ours had removed before.
  package internal(set) var dropped: [SecretIdentifier] = []
  /// The secrets that the merge gives back what theirs has, to undo a commit. Or, if it does not undo, those that would
  /// be changed so, and stay as they are.
  package internal(set) var takenBack: [Change] = []
  /// The secrets of which a change of theirs is left out, because the ancestor has it and ours does not.
  package internal(set) var leftOut: [SecretIdentifier] = []
  /// Whether the history limit of theirs is left out, because the ancestor has it, and ours has one that it replaced.
  package internal(set) var leavesLimitOut = false
  /// The key slots that theirs has added.
  package internal(set) var addedSlots: [VaultKeySlot] = []
  /// The key slots of the vault that theirs has removed.
  package internal(set) var removedSlots: [VaultKeySlot] = []
  /// Whether the key that opened the vault is among the removed ones.
  package internal(set) var locksOut = false
  /// The history limit that the vault has then, if the two have different ones.
  package internal(set) var historyLimit: HistoryLimit?
  /// The secrets that the commit has changed, and that something else has changed since, so that it is not undone.
  var untouched: [SecretIdentifier] = []
  /// Whether theirs and the ancestor have other key slots or history limits, which are not undone.
  var hasOtherSettings = false
  /// Whether something that theirs changed since the ancestor was not taken, so that a revert is not complete.
  package var isPartial: Bool { outcome == .unchanged || hasOtherSettings || !untouched.isEmpty }
  /// What was done.
  package internal(set) var outcome = Outcome.merged
  /// The pins of the vault and of the copy, both from before the merge.
  var pins: [String] = []
  /// The pin of the copy in the state that was merged.
  package var pin: String { pins.last ?? "" }
}
