internal import ArgumentParser
internal import Coffer

struct HistoryLimitCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "history-limit", abstract: "Print or change how many earlier versions the vault keeps.",
    discussion: """
      Without an option, prints the limit. A new limit applies to every secret at once: the vault is written again \
      without the versions beyond it.
      """
  )

  @OptionGroup(title: "Global options") var global: GlobalOptions
  @OptionGroup(title: "Global options") var format: JSONOption

  @Option(help: "The number of earlier versions of each secret: 0 to 1000. 0 keeps none.")
  var versions: Int?

  @Option(help: "The number of days after which an earlier version is dropped: 0 to 36500. 0 sets no limit.")
  var days: Int?

  private struct Report: Encodable {
    let versions: Int
    let days: Int
  }

  func run() throws {
    let backend = try global.backend.openVersioned()
    var limit = try backend.historyLimit()
    if versions != nil || days != nil {
      guard let changed = HistoryLimit(versions: versions ?? limit.versions, days: days ?? limit.days) else {
        throw Failure.usage("The limit is out of bounds. Write 0 to 1000 versions, and 0 to 36500 days.")
      }
      try backend.setHistoryLimit(changed)
      limit = changed
    }
    if format.json {
      return try Output.standard.json(Report(versions: limit.versions, days: limit.days))
    }
    try Output.standard.line(limit.sentence)
  }
}

extension HistoryLimit {
  /// The limit in a message.
  var sentence: String {
    if versions == 0 { return "No earlier versions are kept." }
    let age = days == 0 ? "without a limit of age" : "for \(days) days"
    return "Up to \(versions) earlier versions of each secret are kept, \(age)."
  }
}
