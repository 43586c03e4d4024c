internal import ArgumentParser
internal import Coffer
internal import CofferSystem

struct GitMergeDriverCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "git-merge-driver", abstract: "Merge two copies of a vault, as a merge driver for git.",
    discussion: """
      secret init --git configures it for a clone. git calls it with the file from which both sides come, the file of each \
      side, and the path of the vault, and the merge takes the place of the second file: see secret merge. With status 1, git \
      lists the vault as unmerged: a secret has more than one value, or one commit is taken that goes back to an earlier state, or \
      the vault could not be merged, and is the file of your side.
      """)

  @Argument(help: "The file from which both sides come: %O.")
  var ancestor: String

  @Argument(help: "The file of this side, which becomes the merge: %A.")
  var ours: String

  @Argument(help: "The file of the other side: %B.")
  var theirs: String

  @Argument(help: "The path of the vault in the work tree, for messages: %P.")
  var path: String

  func run() throws {
    let (operation, report): (GitWorkTree.Operation, MergeReport)
    do {
      operation = GitWorkTree.operation
      report = try merge(for: operation)
    } catch {
      guard let failure = Failure(error) else { throw error }
      let reason = [ours, theirs].reduce(failure.message) { $0.replacing($1, with: path) }
      note("secret: The merge of the vault \(path) has failed: \(reason)")
      for line in advice(after: error as? SecretError) { note(line) }
      throw ExitCode(ExitStatus.noSuchSecret.rawValue)
    }
    if operation == .merge && report.outcome == .unchanged {
      note("secret: The other side has an older state of \(path), which adds nothing.")
    }
    for identifier in report.erased.sorted() {
      note("secret: “\(identifier.account)” was erased on the other side of \(path), and is gone here too.")
    }
    for identifier in report.conflicts.sorted() {
      note(
        "secret: “\(identifier.account)” has more than one value in \(path). To choose: secret history, and secret restore"
      )
    }
    for slot in report.addedSlots { note("secret: The other side has added the key slot \(slot.summary) to \(path).") }
    for slot in report.removedSlots {
      note("secret: The other side has removed the key slot \(slot.summary) from \(path).")
    }
    if let limit = report.historyLimit {
      note("secret: The two sides of \(path) have different history limits. From now on: \(limit.sentence)")
    }
    for change in report.takenBack.sorted(by: { $0.identifier < $1.identifier }) {
      let (name, isGone) = (change.identifier.account, change.metadata == nil)
      note(
        operation == .revert
          ? "secret: The revert \(isGone ? "removes" : "gives an earlier value to") “\(name)”."
          : "secret: “\(name)” \(isGone ? "is gone" : "has an earlier value") on the other side of \(path), and stays as it is here."
      )
    }
    let keepsSome = operation != .revert && !report.takenBack.isEmpty
    for identifier in report.leftOut.sorted() {
      note(
        "secret: A change of “\(identifier.account)” is left out: it came before the commit, and \(path) does not have it."
      )
    }
    if report.leavesLimitOut {
      note(
        "secret: The history limit of the other side is left out: it came before the commit, and \(path) does not have it."
      )
    }
    let isPartial = operation == .revert && report.isPartial
    if isPartial {
      note(
        "secret: The revert does not undo everything: key slots and the history limit stay, and so does what was changed again."
      )
    }
    let isLacking = operation == .rebase && (keepsSome || report.leavesLimitOut || !report.leftOut.isEmpty)
    if report.conflicts.isEmpty && !keepsSome && !isLacking && !isPartial { return }
    note(
      isLacking
        ? "secret: The branch below yours lacks what is named. To keep all: git rebase --abort, then git merge"
        : "secret: Everything else is merged. Change what should be otherwise, then: git add \(path.quotedForShell)")
    throw ExitCode(ExitStatus.noSuchSecret.rawValue)
  }

  /// To join branches, no ancestor is needed: whoever serves the branches could choose it. But single commits are
  /// differences from one.
  private func merge(for operation: GitWorkTree.Operation) throws -> MergeReport {
    let vault = GitWorkTree.temporary(ours, BackendOptions.prompts(.current()))
    return try vault.merge(
      with: VaultCopy(at: theirs), ancestor: operation == .merge ? nil : Self.copy(at: ancestor),
      undoing: operation == .revert)
  }

  /// The vault in the file, or `nil` if the file is empty: git gives such a one if the commit added the vault.
  private static func copy(at path: String) throws(SecretError) -> VaultCopy? {
    FileStatus(of: path)?.size == 0 ? nil : try VaultCopy(at: path)
  }

  private func advice(after error: SecretError?) -> [String] {
    let file = path.quotedForShell
    if error?.code != .unexpectedKey {
      return ["When the cause is gone: git show :3:\(file) | secret merge - --vault \(file) && git add -- \(file)"]
    }
    let (mine, others) = (formerKeyCount(ours), formerKeyCount(theirs))
    let isOurs = others.map { mine ?? 0 > $0 } ?? false
    let (side, other) = isOurs ? ("--ours", ":3:") : ("--theirs", ":2:")
    let reason =
      others == nil
      ? "Your key does not open the other side. If a key was changed or removed here, keep your file: git add -- \(file). If there, take that one, with a key that opens it, and single secrets of yours:"
      : "One side has another master key, because it removed a key. Keep the file of that side, take single secrets of the other:"
    return [
      reason,
      "  git checkout \(side) -- \(file)",
      "  git show \(other)\(file) > OTHER; secret copy --from vault:OTHER --to vault:\(file) --former-key --overwrite NAME…",
      "  git add -- \(file)",
    ]
  }

  /// How often the master key of the vault was changed, or `nil` if it does not open: after a removal, one side opens
  /// only with keys that were not removed.
  private func formerKeyCount(_ path: String) -> Int? {
    do throws(SecretError) { return try GitWorkTree.temporary(path, []).formerKeyCount() } catch { return nil }
  }
}
