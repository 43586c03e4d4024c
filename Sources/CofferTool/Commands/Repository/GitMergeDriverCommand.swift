internal import ArgumentParser
internal import Coffer
internal import CofferSystem

struct GitMergeDriverCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "git-merge-driver", abstract: "Merge two copies of a vault, as a merge driver for git.",
    discussion: """
      secret init --git configures it for a clone. git calls it with the file from which both sides come, the file of each \
      side, and the path of the vault, and the merge takes the place of the second file: see secret merge. Says what it did. If \
      the vault is strict, asks before. With status 1, git lists the vault as unmerged: a secret has more than one value, or one \
      commit is taken that goes back to an earlier state, or the vault could not be merged, and is the file of your side.
      """)

  @Argument(help: "The file from which both sides come: %O.")
  var ancestor: String

  @Argument(help: "The file of this side, which becomes the merge: %A.")
  var ours: String

  @Argument(help: "The file of the other side: %B.")
  var theirs: String

  @Argument(help: "The path of the vault in the work tree: %P.")
  var path: String

  @Argument(help: "The length of conflict markers: %L. Above 7, git makes an ancestor for a merge of its own.")
  var markerLength: Int?

  /// The path in messages.
  private var shown: String { path.printable }
  private var vault: VaultBackend { GitWorkTree.temporary(ours, BackendOptions.prompts(.current())) }

  func run() throws {
    let operation = GitWorkTree.operation(on: ours)
    // Nobody sees the result of these, so nobody is told or asked.
    if markerLength ?? 0 > 7 || operation == .view {
      let silent = GitWorkTree.temporary(ours, [])
      do { try silent.merge(with: VaultCopy(at: theirs)) } catch { throw ExitCode(ExitStatus.noSuchSecret.rawValue) }
      return
    }
    let command = GitWorkTree.commandPrinting(ours)
    let report: MergeReport
    do { report = try merge(for: operation, command) } catch {
      guard let failure = Failure(error) else { throw error }
      explain(failure, error as? SecretError)
      throw ExitCode(ExitStatus.noSuchSecret.rawValue)
    }
    show(report, operation, command)
    let isStopped = !report.conflicts.isEmpty || report.renamings.contains(where: \.isConflict)
    let keepsSome = operation != .revert && !report.takenBack.isEmpty
    let isLacking = operation == .rebase && (keepsSome || !report.leftOut.isEmpty)
    let isPartial = operation == .revert && report.isPartial
    if isPartial { say("The revert does not undo everything: key slots stay, and so does what was changed again.") }
    if !isStopped && !keepsSome && !isLacking && !isPartial { return }
    say(
      isLacking
        ? "The branch below yours lacks what is named. To keep all: git rebase --abort, then git merge"
        : "Everything else is merged. Change what should be otherwise, then: git add \(path.quotedForShell)")
    throw ExitCode(ExitStatus.noSuchSecret.rawValue)
  }

  private func say(_ text: String) { note("secret: \(shown): \(text)") }

  /// To join branches, no ancestor is needed: whoever serves the branches could choose it. But single commits are
  /// differences from one.
  private func merge(for operation: GitWorkTree.Operation, _ command: String?) throws -> MergeReport {
    let ancestor = operation == .merge || operation == .unknown ? nil : try Self.copy(at: ancestor)
    let (copy, undoing) = (try VaultCopy(at: theirs), operation == .revert)
    // The work tree may have no file there, as when the vault was renamed.
    let isStrict = FileStatus(of: path) == nil ? false : try BackendConfiguration.current().vault(at: path).isStrict()
    if !isStrict {
      return try vault.merge(with: copy, ancestor: ancestor, undoing: undoing)
    }
    let found = try vault.mergePreview(with: copy, ancestor: ancestor, undoing: undoing)
    if found.outcome != .unchanged {
      show(found, operation, command)
      let next =
        operation == .merge
        ? "Compare it with a pin that came by another way, then: git show :3:\(path.quotedForShell) | secret merge - --vault "
          + "\(path.quotedForShell) --pin PIN && git add -- \(path.quotedForShell)"
        : "Stop this with git, and run it again in a terminal."
      note("The pin of the other side is \(found.pin).")
      try Terminal.confirm(
        "Merge it?", otherwise: "The vault is strict, and nobody could be asked. \(next)", usingDevice: true)
    }
    return try vault.merge(with: copy, ancestor: ancestor, undoing: undoing, previewed: found)
  }

  /// The vault in the file, or `nil` if the file has none: git gives an empty one if both sides added the vault.
  private static func copy(at path: String) throws(SecretError) -> VaultCopy? {
    do throws(SecretError) { return try VaultCopy(at: path) } catch {
      if error.code == .notAVault { return nil }
      throw error
    }
  }

  // MARK: What is said

  /// Says what the merge does. `command` prints the file that ours was before.
  private func show(_ report: MergeReport, _ operation: GitWorkTree.Operation, _ command: String?) {
    func list(_ what: String, _ names: [SecretIdentifier], most: Int = 10) {
      if !names.isEmpty { say("\(what): \(names.sorted().map(\.shown).listed(most: most))") }
    }
    if operation == .unknown { say("Nothing tells what git does, so all changes of the other side are merged.") }
    if operation == .merge && report.outcome == .unchanged {
      say("The other side has an older state, which adds nothing.")
    }
    list("erased on the other side, and so here", report.erased, most: .max)
    if let limit = report.historyLimit { say("another history limit: \(limit.sentence)") }
    if let command, !report.erased.isEmpty || report.historyLimit != nil {
      say("your side's file, with what is erased or dropped: \(command) > OLD")
      let names = report.erased.sorted().map { SecretReference.text(of: $0).quotedForShell }.joined(separator: " ")
      if !names.isEmpty { note("  secret copy --from vault:OLD --to \("vault:\(path)".quotedForShell) \(names)") }
    }
    let former = Set(report.renamings.map(\.former))
    let present = Set(report.renamings.map(\.present))
    func changed(_ isIncluded: (MergeReport.Change) -> Bool) -> [SecretIdentifier] {
      report.changes.filter(isIncluded).map(\.identifier)
    }
    list("stored", changed { $0.metadata != nil && !$0.isOverRemoval && !present.contains($0.identifier) })
    list("stored on the other side, and here again, although your side removed it", changed(\.isOverRemoval))
    list("removed", changed { $0.metadata == nil && !former.contains($0.identifier) })
    list("removed on the other side, and here still, because your side stored it since", report.kept)
    let renamings = report.renamings.map { "\($0.former.shown) to \($0.present.shown)" }
    if !renamings.isEmpty { say("renamed: \(renamings.listed(most: 10))") }
    for one in report.renamings where one.isConflict {
      let names = [one.former, one.present].map { SecretReference.text(of: $0).quotedForShell }.joined(separator: " ")
      say(
        "\(one.former.shown) has another value since, so both names are there. To give it to the new one: secret move --force \(names)"
      )
    }
    list("more than one value, to choose with secret history and secret restore", report.conflicts)
    func keys(_ what: String, _ slots: [VaultKeySlot]) {
      if !slots.isEmpty { say("\(what): \(slots.map(\.summary).listed(most: 10))") }
    }
    keys("key slots that the other side added", report.addedSlots)
    keys("key slots that the other side removed", report.removedSlots)
    let (gone, back) = (report.takenBack.filter { $0.metadata == nil }, report.takenBack.filter { $0.metadata != nil })
    let isRevert = operation == .revert
    list(isRevert ? "removed by the revert" : "gone on the other side, and as it is here", gone.map(\.identifier))
    list(isRevert ? "an earlier value again" : "earlier on the other side, and as it is here", back.map(\.identifier))
    list("a change left out, which came before the commit and is not on your side", report.leftOut)
  }

  /// Says why the merge has failed, and what to do.
  private func explain(_ failure: Failure, _ error: SecretError?) {
    let file = path.quotedForShell
    if let error, isOfTheirs(error) {
      note("secret: The merge of the vault \(shown) has failed: the file of the other side: \(named(error.reason))")
      return note("Yours is intact. To go on with it: git add -- \(file)")
    }
    note("secret: The merge of the vault \(shown) has failed: \(named(failure.message))")
    let lines: [String]
    switch error?.code {
    case .unexpectedKey:
      let (mine, others) = (formerKeyCount(ours), formerKeyCount(theirs))
      let isOurs = others.map { mine ?? 0 > $0 } ?? false
      let reason =
        others == nil
        ? "Your key does not open the other side. If a key was changed or removed here, keep your file: git add -- \(file). If there, take that one, with a key that opens it, and single secrets of yours:"
        : "One side has another master key, because it removed a key. Keep the file of that side, take single secrets of the other:"
      let side = "  git checkout \(isOurs ? "--ours" : "--theirs") -- \(file)"
      lines = [reason, side] + copying(from: isOurs ? 3 : 2, formerKey: true)
    case .rolledBack:
      lines = ["Keep your file, and copy what the other side has:"] + copying(from: 3, formerKey: false)
    default:
      lines = ["When the cause is gone: git show :3:\(file) | secret merge - --vault \(file) && git add -- \(file)"]
    }
    for line in lines { note(line) }
  }

  /// `text` with the path of the vault in place of git's temporary names.
  private func named(_ text: String) -> String { [ours, theirs].reduce(text) { $0.replacing($1, with: shown) } }

  /// Whether the file of the other side by itself has the error.
  private func isOfTheirs(_ error: SecretError) -> Bool {
    guard [.tampered, .notAVault, .unsupportedVersion].contains(error.code) else { return false }
    do throws(SecretError) { _ = try GitWorkTree.temporary(theirs, []).verify() } catch let own { return own.code == error.code }
    return false
  }

  /// The commands that copy secrets from the file that git has at `stage`, 2 for ours or 3 for theirs.
  private func copying(from stage: Int, formerKey: Bool) -> [String] {
    let (other, kept) = stage == 3 ? (theirs, ours) : (ours, theirs)
    var names: [SecretIdentifier] = []
    do throws(SecretError) {
      let found = try GitWorkTree.temporary(kept, []).fingerprints()
      names = try GitWorkTree.temporary(other, []).fingerprints().filter { found[$0.key] != $0.value }.keys.sorted()
    } catch {}  // The person names them.
    let file = path.quotedForShell
    let words =
      names.isEmpty || names.count > 10
      ? "NAME…" : names.map { SecretReference.text(of: $0).quotedForShell }.joined(separator: " ")
    return (names.count > 10 ? ["  Other values are in: \(names.map(\.shown).listed(most: 10))"] : []) + [
      "  git show :\(stage):\(file) > OTHER; secret copy --from vault:OTHER --to vault:\(file) \(formerKey ? "--former-key " : "")--overwrite \(words)",
      "  git add -- \(file)",
    ]
  }

  /// How often the master key of the vault was changed, or `nil` if it does not open: after a removal, one side opens
  /// only with keys that were not removed.
  private func formerKeyCount(_ path: String) -> Int? {
    do throws(SecretError) { return try GitWorkTree.temporary(path, []).generation().formerKeys } catch { return nil }
  }
}

extension SecretIdentifier {
  /// The name in a message.
  fileprivate var shown: String {
    service == SecretReference.defaultService ? "“\(account.printable)”" : SecretReference.text(of: self)
  }
}
