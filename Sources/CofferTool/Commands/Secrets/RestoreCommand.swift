internal import ArgumentParser
internal import Coffer
internal import FoundationEssentials

struct RestoreCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "restore", abstract: "Store earlier versions of secrets again.",
    discussion: """
      Restores the version before the last change of each secret, even of a removed one. If a secret has none, nothing \
      is restored. With --as-of, restores the versions that were current at that time: without names, of every secret \
      in the service that was changed or removed since, as after a wrong import. A secret that did not exist then is \
      kept. A secret whose version of that time was dropped is named and kept, and the exit status is then 1. The \
      values that are replaced stay in the history.
      """)

  @OptionGroup(title: "Global options") var global: GlobalOptions

  @Argument(help: "The secrets' names.", completion: CompletedValue.formerNames.kind)
  var names: [String] = []

  @Option(help: ArgumentHelp("The number of the version, as secret history prints it.", valueName: "number"))
  var version: Int?

  @Option(help: ArgumentHelp("A time in the past: \(TimeText.pastForms).", valueName: "time"))
  var asOf: String?

  func run() throws {
    let moment = try checkedMoment()
    let backend = try global.openVersioned(to: .change)
    let identifiers = try identifiers(in: backend)
    let (restored, dropped) = try backend.withTransaction { transaction in
      var restored: [SecretIdentifier: SecretVersion] = [:]
      var dropped: [SecretIdentifier] = []
      for identifier in identifiers {
        let versions = try transaction.versions(of: identifier)
        let wanted: Int?
        if let moment {
          if Self.isDropped(versions, at: moment) { dropped.append(identifier) }
          wanted = versions.first { $0.date <= moment && $0.kind != .removal }?.number
        } else {
          wanted = version ?? versions.first { [.earlier, .conflict].contains($0.kind) }?.number
          let isKnown = versions.contains { $0.number == wanted && $0.kind != .removal }
          if !isKnown { throw MissingSecret.failure(identifier, version: version) }
        }
        guard let wanted else { continue }
        restored[identifier] = try transaction.restore(identifier, version: wanted)
      }
      return (restored, dropped)
    }
    for identifier in identifiers {
      guard let version = restored[identifier] else { continue }
      inform("Restored “\(identifier.account)”: version \(version.number) of \(version.date.ISO8601Format()).")
    }
    if restored.isEmpty && dropped.isEmpty { inform("Nothing had to be restored.") }
    if !dropped.isEmpty {
      let names = dropped.map { "“\($0.account)”" }.joined(separator: ", ")
      throw Failure(
        .noSuchSecret, "The history has no version of that time any more, and these secrets were kept: \(names).",
        effect: restored.isEmpty ? .none : .changed)
    }
  }

  /// Checks the options. Returns the time of `--as-of`, or `nil` without it.
  private func checkedMoment() throws(Failure) -> Date? {
    guard let asOf else {
      if names.isEmpty { throw .usage("There is no name. Write the secrets' names, or --as-of TIME.") }
      if version != nil && names.count > 1 {
        throw .usage("--version is the number of a version of one secret. Write one name.")
      }
      return nil
    }
    if version != nil { throw .exclusive("--as-of and --version") }
    return try TimeText.pastMoment(asOf, of: "--as-of")
  }

  /// Whether the secret existed at `moment`, and its version of that time is not among `versions`, newest first.
  private static func isDropped(_ versions: [SecretVersion], at moment: Date) -> Bool {
    guard let oldest = versions.last, oldest.date > moment else { return false }
    return oldest.metadata.created.map { $0 <= moment } ?? false
  }

  /// The named secrets, or every secret that the service has or had.
  private func identifiers(in backend: any SecretBackend) throws -> [SecretIdentifier] {
    if names.isEmpty { return try backend.formerIdentifiers(inService: global.serviceName) }
    let identifiers = try global.identifiers(names)
    for identifier in identifiers where try backend.versions(of: identifier).isEmpty {
      throw MissingSecret.failure(identifier, in: backend)
    }
    return identifiers
  }
}
