internal import ArgumentParser
internal import Coffer
internal import CofferSystem

struct GitMergeDriverCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "git-merge-driver", abstract: "Merge two copies of a vault, as a merge driver for git.",
    discussion: """
      secret init --git configures it for a clone. git calls it with the file from which both sides come, the file of each \
      side, and the path of the vault, and the merge takes the place of the second file: see secret merge. With status 1, git \
      lists the vault as unmerged: a secret has two values, or the other side takes back what it has no change for, outside \
      of a revert, or the vault could not be merged, and is the file of your side.
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
    let report: MergeReport
    let isRevert = GitWorkTree.isReverting
    do {
      report = try merge(takingBack: isRevert)
    } catch {
      guard let failure = Failure(error) else { throw error }
      note("secret: The merge of the vault \(path) has failed: \(failure.message)")
      for line in advice(after: error as? SecretError) { note(line) }
      throw ExitCode(ExitStatus.noSuchSecret.rawValue)
    }
    let kept = isRevert ? [] : report.takenBack
    for identifier in report.conflicts.sorted() {
      note("secret: “\(identifier.account)” has two values in \(path). To choose: secret history, and secret restore")
    }
    for change in kept.sorted(by: { $0.identifier < $1.identifier }) {
      let what = change.metadata == nil ? "is gone" : "has an earlier value"
      note("secret: “\(change.identifier.account)” \(what) on the other side of \(path), and stays as it is here.")
    }
    if report.conflicts.isEmpty && kept.isEmpty { return }
    note("secret: Everything else is merged. Change what should be otherwise, then: git add \(path.quotedForShell)")
    throw ExitCode(ExitStatus.noSuchSecret.rawValue)
  }

  private func merge(takingBack: Bool) throws -> MergeReport {
    let vault = GitWorkTree.temporary(ours, BackendOptions.prompts(.current()))
    return try vault.merge(
      with: VaultCopy(at: theirs), ancestor: Self.copy(at: ancestor), takingBack: takingBack)
  }

  /// The vault in the file, or `nil` if the file has none: git gives an empty one if both sides added the vault.
  private static func copy(at path: String) throws(SecretError) -> VaultCopy? {
    do throws(SecretError) { return try VaultCopy(at: path) } catch {
      if error.code == .notAVault { return nil }
      throw error
    }
  }

  private func advice(after error: SecretError?) -> [String] {
    let file = path.quotedForShell
    if error?.code != .unexpectedKey {
      return ["When the cause is gone: git show :3:\(file) | secret merge - --vault \(file) && git add -- \(file)"]
    }
    return [
      "One side removed a key. Keep the file of that side, take single secrets of the other one, and say that it is done:",
      "  git checkout --theirs -- \(file)     (or --ours)",
      "  git show :2:\(file) > OTHER; secret copy --from vault:OTHER --to vault:\(file) --former-key --overwrite NAME…     (or :3:)",
      "  git add -- \(file)",
    ]
  }
}
