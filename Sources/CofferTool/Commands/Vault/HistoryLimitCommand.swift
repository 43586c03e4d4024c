internal import ArgumentParser
internal import Coffer
internal import FoundationEssentials

struct HistoryLimitCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "history-limit", abstract: "Print or change how many earlier versions the vault keeps.",
    discussion: """
      Without an option, prints the limit. A new limit applies to every secret at once: the vault is written again \
      without the versions beyond it, and a removed secret without a version cannot be restored. If there are such \
      versions, the command asks on a terminal, and otherwise requires --purge.
      """)

  @OptionGroup(title: "Global options") var global: GlobalOptions
  @OptionGroup(title: "Global options") var format: JSONOption

  @Option(help: "The number of earlier versions of each secret: 0 to 1000. 0 keeps none.")
  var versions: Int?

  @Option(help: "The number of days after which an earlier version is dropped: 0 to 36500. 0 sets no limit.")
  var days: Int?

  @Flag(help: "Erase the versions beyond the new limit without a question.")
  var purge = false

  func run() throws {
    let backend = try global.openVault(requirement: "Only a vault keeps earlier versions")
    var limit = try backend.historyLimit()
    if versions != nil || days != nil {
      guard let changed = HistoryLimit(versions: versions ?? limit.versions, days: days ?? limit.days) else {
        throw Failure.usage("The limit is out of bounds. Write 0 to 1000 versions, and 0 to 36500 days.")
      }
      if !purge { try confirm(changed, in: backend) }
      try backend.setHistoryLimit(changed)
      CofferTool.changed("The limit was changed.")
      limit = changed
      let left = try backend.verify().excessVersionCount
      if left > 0 {
        // See “History” in VaultFormat: age is judged by the time of the last change.
        note("Versions beyond the limit: \(left). They stay in the file until it is written anew after a later change.")
      }
    }
    try format.print(["versions": limit.versions, "days": limit.days], or: limit.sentence + "\n")
  }

  /// Throws a failure if `limit` erases versions and the user does not agree.
  private func confirm(_ limit: HistoryLimit, in backend: VaultBackend) throws {
    let oldest = Date(timeIntervalSinceNow: -86_400 * Double(limit.days))
    var (erased, lost) = (0, 0)
    for identifier in try backend.formerIdentifiers(inService: nil) {
      let versions = try backend.versions(of: identifier)
      // Each version with the one that replaced it, newest first.
      let earlier = zip(versions.dropFirst(), versions).filter { $0.0.kind == .earlier }
      let kept = earlier.prefix(limit.versions).prefix { limit.days == 0 || max($0.0.date, $0.1.date) >= oldest }.count
      erased += earlier.count - kept
      if versions.first?.kind == .removal && kept == 0 { lost += 1 }
    }
    if erased == 0 { return }
    let outcome = "This erases earlier versions: \(erased). Removed secrets lost with them: \(lost)."
    try Terminal.confirm("\(outcome) Erase them?", otherwise: outcome, advice: "Add --purge to erase them.")
  }
}

extension HistoryLimit {
  var sentence: String {
    if versions == 0 { return "No earlier versions are kept." }
    let age = days == 0 ? "without a limit of age" : "for \(days) \(days == 1 ? "day" : "days")"
    let plural = versions == 1 ? " of each secret is" : "s of each secret are"
    return "Up to \(versions) earlier version\(plural) kept, \(age)."
  }
}
