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

  func run() throws {
    let operation = GitWorkTree.operation(on: ours)
    // Nobody keeps the result of this, so nobody is told or asked.
    if operation == .view {
      do { try GitWorkTree.temporary(ours, []).merge(with: VaultCopy(at: theirs)) } catch { throw Self.stopped }
      return
    }
    let command = GitWorkTree.commandPrinting(ours)
    let vault = GitWorkTree.temporary(ours, BackendOptions.prompts(.current()))
    let report: MergeReport
    do { report = try merge(into: vault, for: operation, command) } catch {
      guard let failure = Failure(error) else { throw error }
      explain(failure, error as? SecretError)
      throw Self.stopped
    }
    let isStopped = !report.conflicts.isEmpty || report.renamings.contains(where: \.isConflict)
    let keepsSome = operation != .revert && !report.takenBack.isEmpty
    let isLacking = operation == .rebase && (keepsSome || report.leavesLimitOut || !report.leftOut.isEmpty)
    let isPartial = operation == .revert && report.isPartial
    if isPartial { say("not undone: key slots, the history limit, and what was changed again") }
    if !isStopped && !keepsSome && !isLacking && !isPartial {
      // Before somebody reads the merge, an earlier file can come. But what nobody was told of is left to that reader.
      let isHeard = !Output.messages.isNullDevice && GitWorkTree.keepsMerge
      do throws(SecretError) { if isHeard { try vault.recordMerge(at: GitWorkTree.names(of: path)) } } catch {}
      return
    }
    say(
      isLacking
        ? "The branch below yours lacks what is named. To keep all: git rebase --abort, then git merge"
        : "Everything else is merged. Change what should be otherwise, then: git add \(place)")
    throw Self.stopped
  }

  private static let stopped = ExitCode(ExitStatus.noSuchSecret.rawValue)
  /// The path as a word of a command. git takes a leading `-` for an option, and a leading `:` for a pattern.
  private var file: String { ((path.hasPrefix("-") || path.hasPrefix(":") ? "./" : "") + path).quotedForShell }
  /// The same for a person who has started git in a subdirectory of the work tree: absolute.
  private var place: String {
    if Environment.value("GIT_PREFIX") ?? "" == "" { return file }
    do { return try Path.absolute(path).quotedForShell } catch { return file }
  }
  private func sentence(_ text: String) -> String { "secret: \(path.printable): \(text)" }
  private func say(_ text: String) { note(sentence(text)) }

  /// Merges, and says what changes. An ancestor is used for single commits, which are differences from it. To join
  /// branches, it is not needed, and whoever serves the branches could choose it.
  private func merge(
    into vault: VaultBackend, for operation: GitWorkTree.Operation, _ command: String?
  ) throws -> MergeReport {
    // git gives an empty file if the commit added the vault.
    let hasAncestor = operation != .merge && operation != .unknown && FileStatus(of: ancestor)?.size != 0
    let ancestor = hasAncestor ? try VaultCopy(at: ancestor) : nil
    let (copy, undoing) = (try VaultCopy(at: theirs), operation == .revert)
    // The file or its directory may be missing: the vault was renamed, or the checkout is sparse.
    let names = try GitWorkTree.names(of: path)
    let (isStrict, isBehind) = try vault.compare(at: names, below: GitWorkTree.top(of: ours))
    // As in a rebase: the person has not seen the branch on which the commits are put.
    if isBehind && (isStrict || !GitWorkTree.hasPicked(onto: ours, path)) {
      let below = try vault.mergePreview(with: copy, isReversed: true)
      let lines = lines(of: below, .view, GitWorkTree.commandPrinting(theirs))
      say("What is checked out is not what this machine has seen here last. Its pin is \(below.pin).")
      if !lines.isEmpty { say("It has what the other side has not:") }
      (lines + [sentence("The other side:")]).forEach { note($0) }
    }
    let found = isStrict ? try vault.mergePreview(with: copy, ancestor: ancestor, undoing: undoing) : nil
    if let found { lines(of: found, operation, command).forEach { note($0) } }
    if let found, found.outcome != .unchanged || isBehind {
      // Nobody has read what is asked.
      if Output.messages.isNullDevice { throw Self.stopped }
      let merge = "git show :3:\(file) | secret merge - --vault \(place) --pin PIN && git add -- \(place)"
      let next = hasAncestor ? "Stop git, and run it in a terminal." : "Get its pin by another way, then: \(merge)"
      note("The pin of the other side is \(found.pin).")
      let refusal = "The vault is strict, and nobody could be asked. \(next)"
      try Terminal.confirm("Merge it?", otherwise: refusal, usingDevice: true)
    }
    let report = try vault.merge(with: copy, ancestor: ancestor, undoing: undoing, previewed: found)
    if !isStrict { lines(of: report, operation, command).forEach { note($0) } }
    return report
  }

  // MARK: What is said

  /// Says in lines what the merge changes. `command` is a command that prints ours as it was before.
  private func lines(of report: MergeReport, _ operation: GitWorkTree.Operation, _ command: String?) -> [String] {
    var lines: [String] = []
    func say(_ text: String) { lines.append(sentence(text)) }
    func list(_ what: String, _ items: [String], most: Int = 10) {
      if !items.isEmpty { say("\(what): \(items.listed(most: most))") }
    }
    func list(_ what: String, _ changes: [MergeReport.Change], _ isIncluded: (MergeReport.Change) -> Bool) {
      list(what, changes.filter(isIncluded).map(\.identifier).sorted().map(\.shown))
    }
    if operation == .unknown { say("Nothing tells what git does, so all changes of the other side are merged.") }
    let isRevert = operation == .revert
    if ![.revert, .view].contains(operation) && report.outcome == .unchanged {
      say("The other side is older, and adds nothing.")
    }
    let (dropped, erased) = (report.dropped.sorted(), report.erased.filter { !report.dropped.contains($0) }.sorted())
    list("erased on the other side, and so here", erased.map(\.shown), most: .max)
    list("earlier versions erased on the other side, and so here", dropped.map(\.shown), most: .max)
    if let limit = report.historyLimit { say("another history limit: \(limit.sentence)") }
    if let command, !(dropped + erased).isEmpty || report.historyLimit != nil {
      say("the file before, with what is erased or dropped: OLD=$(mktemp); \(command) > \"$OLD\"")
      let copy = "secret copy --from \"vault:$OLD\" --to vault:\(place)"
      if !erased.isEmpty { lines.append("  \(copy) \(references(erased))") }
    }
    let renamed = Set(report.renamings.flatMap { [$0.former, $0.present] })
    let changes = report.changes.filter { !renamed.contains($0.identifier) }
    list("stored", changes) { $0.metadata != nil && !$0.isOverRemoval }
    list("stored on the other side, and here again, although your side removed it", changes, \.isOverRemoval)
    list("removed", changes) { $0.metadata == nil }
    list("removed on the other side, and here still, because your side stored it since", report.kept.map(\.shown))
    list("renamed", report.renamings.map { "\($0.former.shown) to \($0.present.shown)" })
    for one in report.renamings where one.isConflict {
      let command = "secret move --force \(references([one.former, one.present]))"
      say("\(one.former.shown) was stored since, so both names are there. To give the new one its value: \(command)")
    }
    list("more than one value; choose with secret history and secret restore", report.conflicts.sorted().map(\.shown))
    list("key slots that the other side added", report.addedSlots.map(\.summary))
    list("key slots that the other side removed", report.removedSlots.map(\.summary))
    list(isRevert ? "removed by the revert" : "gone there, and as it is here", report.takenBack) { $0.metadata == nil }
    list(isRevert ? "an earlier value again" : "earlier there, and as it is here", report.takenBack) {
      $0.metadata != nil
    }
    let leftOut = (report.leavesLimitOut ? ["the history limit"] : []) + report.leftOut.sorted().map(\.shown)
    list("changed before the commit, which your side does not have, and left out", leftOut)
    return lines
  }

  /// Names for a command.
  private func references(_ names: [SecretIdentifier]) -> String {
    names.map { SecretReference.text(of: $0).quotedForShell }.joined(separator: " ")
  }

  /// Says why the merge has failed, and what to do.
  private func explain(_ failure: Failure, _ error: SecretError?) {
    let damage: Set<SecretError.Code> = [.tampered, .notAVault, .unsupportedVersion]
    var isTheirs = false
    if let error, damage.contains(error.code) {
      do throws(SecretError) { _ = try GitWorkTree.temporary(theirs, []).verify() } catch let own {
        isTheirs = own.code == error.code
      }
    }
    let reason = isTheirs ? "the file of the other side: \(error?.reason ?? "") Yours is intact." : failure.message
    say("The merge has failed: \([ours, theirs].reduce(reason) { $0.replacing($1, with: path.printable) })")
    if isTheirs { return note("To go on with yours: git add -- \(place)") }
    switch error?.code {
    case .unexpectedKey:
      let (mine, others) = (formerKeyCount(ours), formerKeyCount(theirs))
      let isOurs = others.map { mine ?? 0 > $0 } ?? false
      note(
        others == nil
          ? "Your key does not open the other side. If a key was changed or removed here, keep your file: git add -- \(place). If there, take that one, with a key that opens it, and single secrets of yours:"
          : "One side has another master key, because it removed a key. Keep the file of that side, take single secrets of the other:"
      )
      note("  git checkout \(isOurs ? "--ours" : "--theirs") -- \(place)")
      noteCopying(from: isOurs ? 3 : 2, "--former-key ")
    case .rolledBack:
      note("Keep your file, and copy what the other side has:")
      noteCopying(from: 3)
    case nil: break
    default:
      note("When the cause is gone: git show :3:\(file) | secret merge - --vault \(place) && git add -- \(place)")
    }
  }

  /// Prints the commands that copy secrets from the file that git has at `stage`, 2 for ours or 3 for theirs.
  private func noteCopying(from stage: Int, _ option: String = "") {
    let (other, kept) = stage == 3 ? (theirs, ours) : (ours, theirs)
    var names: [SecretIdentifier] = []
    do throws(SecretError) {
      let found = try GitWorkTree.temporary(kept, []).fingerprints()
      names = try GitWorkTree.temporary(other, []).fingerprints().filter { found[$0.key] != $0.value }.keys.sorted()
    } catch {}  // The person names them.
    if names.count > 10 { note("  Other values are in: \(names.map(\.shown).listed(most: 10))") }
    let words = (1...10).contains(names.count) ? references(names) : "NAME…"
    note(
      "  OTHER=$(mktemp); git show :\(stage):\(file) > \"$OTHER\"; secret copy --from \"vault:$OTHER\" --to vault:\(place) \(option)--overwrite \(words)"
    )
    note("  git add -- \(place)")
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
