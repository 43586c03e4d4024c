internal import ArgumentParser
internal import Coffer

struct ImportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Store the secrets of a .env file, or of one that export wrote.",
    discussion: """
      All of them or none, where the store is a vault. In a .env file a variable's name becomes the secret's, in \
      the service of --service. Whether a file is JSON or lines of NAME=value is seen by its first character. A line \
      that cannot be read is named by its number, and nothing is imported then.
      """
  )

  @OptionGroup(title: "Global options") var global: GlobalOptions

  @Argument(help: "The file, or - for standard input.", completion: .file())
  var file: String

  @Flag(help: "Only say what would be done.")
  var dryRun = false

  @Flag(help: "Replace secrets that are there already with another value.")
  var overwrite = false

  private struct Summary {
    var new = 0
    var replaced = 0
    var same = 0
    /// Those that are there already, and are not to be replaced.
    var conflicts: [SecretIdentifier] = []
    var stored: [ExchangedSecret] = []
  }

  func run() throws {
    let name = file == "-" ? "standard input" : file
    let contents = try ValueInput.read(file: file)
    let secrets: [ExchangedSecret]
    switch ExchangeFormat.of(contents) {
    case .json:
      secrets = try ExchangeFile.secrets(in: contents, of: name, service: global.serviceName)
    case .dotenv:
      secrets = try Dotenv.entries(in: contents, of: name).map {
        ExchangedSecret(identifier: try global.identifier($0.name), value: $0.value, metadata: nil)
      }
    }
    let store = try global.store()
    let summary: Summary
    if !dryRun, let store = store as? any TransactionalSecretBackend {
      summary = try store.transaction { transaction throws(SecretError) in
        let summary = try self.summary(of: secrets, lookup: transaction.lookup)
        if summary.conflicts.isEmpty {
          for secret in summary.stored {
            try transaction.store(secret.value.bytes, for: secret.identifier, metadata: secret.metadata)
          }
        }
        return summary
      }
    } else {
      summary = try self.summary(of: secrets, lookup: store.lookup)
      if !dryRun && summary.conflicts.isEmpty { try Self.store(summary.stored, oneByOneIn: store) }
    }
    if !summary.conflicts.isEmpty { throw Self.conflict(summary.conflicts) }
    note(
      "\(dryRun ? "Would import" : "Imported") \(summary.stored.count): \(summary.new) new, "
        + "\(summary.replaced) replaced. \(summary.same) were there already."
    )
  }

  private func summary(
    of secrets: [ExchangedSecret],
    lookup: (SecretIdentifier) throws(SecretError) -> SecretBytes?
  ) throws(SecretError) -> Summary {
    var summary = Summary()
    for secret in secrets {
      guard let existing = try lookup(secret.identifier) else {
        summary.new += 1
        summary.stored.append(secret)
        continue
      }
      if existing.isEqual(to: secret.value.bytes) {
        summary.same += 1
      } else if overwrite {
        summary.replaced += 1
        summary.stored.append(secret)
      } else {
        summary.conflicts.append(secret.identifier)
      }
    }
    return summary
  }

  /// Where there is no transaction.
  private static func store(
    _ secrets: [ExchangedSecret],
    oneByOneIn store: any SecretBackend
  ) throws(SecretError) {
    for (index, secret) in secrets.enumerated() {
      do throws(SecretError) {
        try store.store(secret.value.bytes, for: secret.identifier, metadata: secret.metadata)
      } catch {
        if index > 0 { note("secret: \(index) of \(secrets.count) secrets had been imported already.") }
        throw error
      }
    }
  }

  private static func conflict(_ identifiers: [SecretIdentifier]) -> Failure {
    Failure(
      .wouldOverwrite,
      "\(listed(identifiers.map(\.account))) would be replaced. Nothing was imported; add --overwrite to replace."
    )
  }

  /// Names for a sentence: the first twenty, and how many more.
  static func listed(_ names: [String]) -> String {
    let most = 20
    let shown = names.prefix(most).map { "“\($0)”" }.joined(separator: ", ")
    return names.count > most ? "\(shown) and \(names.count - most) more" : shown
  }
}
