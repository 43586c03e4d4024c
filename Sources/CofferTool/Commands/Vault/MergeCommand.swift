internal import ArgumentParser
internal import Coffer
internal import CofferSystem
internal import FoundationEssentials
internal import CofferLibc

struct MergeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "merge", abstract: "Merge another copy of the vault into it.",
    discussion: """
      OTHER is a copy that went its own way: from another machine, a branch or a backup. What it changed since is merged, \
      secret by secret; of two values of one secret the later one is present, and the other stays in its history. What the \
      copy has erased is erased, unless it was changed here since. Key slots that it added stay, and removed ones do not come \
      back. An older copy changes nothing, and one that only goes on from this vault takes its place as it is. Prints what \
      came, and asks on a terminal. Exits with status 1 if there are conflicts: see secret history. A copy under another \
      master key is refused.
      """)

  @OptionGroup(title: "Global options") var global: GlobalOptions

  @Argument(help: "The file of the other copy, or - for standard input.")
  var other: String

  @Flag(help: "Merge a copy that goes on from this vault without a question.")
  var yes = false

  @Option(help: ArgumentHelp("Merge the copy without a question if it has this pin.", valueName: "pin"))
  var pin: String?

  /// The largest copy from standard input: 64 MiB.
  private static let maximumLength = 64 << 20

  func run() throws {
    let vault = try global.openVault(requirement: "Only a vault can be merged")
    let copy = try readCopy()
    let found = try vault.mergePreview(with: copy, pin: pin)
    if found.outcome == .unchanged { return inform("The copy has nothing new. Nothing was changed.") }
    try show(found)
    try confirm(found)
    let report = try vault.merge(with: copy, previewed: found)
    changed("The copy was merged.")
    inform(report.outcome == .replaced ? "Took the copy, which goes on from this vault." : "Merged the copy.")
    if !report.conflicts.isEmpty || report.renamings.contains(where: \.isConflict) {
      throw ExitCode(ExitStatus.noSuchSecret.rawValue)
    }
  }

  private func readCopy() throws -> VaultCopy {
    if other != "-" { return try VaultCopy(at: other) }
    guard let bytes = try readToEnd(of: STDIN_FILENO, named: "standard input", limit: Self.maximumLength) else {
      throw SecretError(
        .tooLarge, "The copy is longer than \(Self.maximumLength) bytes.",
        advice: "Write it to a file, and name that.")
    }
    return VaultCopy(bytes.withBytes { $0.withUnsafeBufferPointer { Array($0) } }, named: "standard input")
  }

  private func show(_ found: MergeReport) throws {
    var lines = found.erased.sorted().map { "erased\t\($0.text)\n" }
    lines += found.dropped.sorted().map { "earlier versions erased\t\($0.text)\n" }
    lines += found.changes.sorted { $0.identifier < $1.identifier }.map { change in
      let event = change.metadata == nil ? "removed" : "stored"
      return "\(event)\t\(change.identifier.text)\t\(change.date.ISO8601Format())\n"
    }
    lines += found.kept.sorted().map { "kept\t\($0.text)\n" }
    lines += found.renamings.map { "renamed\t\($0.former.text)\t\($0.present.text)\n" }
    lines += found.conflicts.sorted().map { "conflict\t\($0.text)\n" }
    lines += found.addedSlots.map { "key slot added\t\($0.line)\n" }
    lines += found.removedSlots.map { "key slot removed\t\($0.line)\n" }
    if let limit = found.historyLimit { lines.append("history limit\t\(limit.sentence)\n") }
    try Output.standard.write(lines.joined())
    if found.locksOut { note("The key that opened the vault is removed: it will not open the merge.") }
  }

  /// Asks whether the copy is to be merged, unless its pin was compared.
  private func confirm(_ found: MergeReport) throws {
    let goesOn = found.outcome == .replaced
    if pin != nil || yes && goesOn && !found.locksOut { return }
    let advice = goesOn ? "Add --yes to take the copy." : "Give the pin that came by another way: --pin PIN."
    note("The pin of the copy is \(found.pin).")
    try Terminal.confirm("Merge it?", advice: advice, usingDevice: other == "-")
  }
}

extension SecretIdentifier {
  fileprivate var text: String { "\(service.printable)\t\(account.printable)" }
}
