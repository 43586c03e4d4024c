internal import ArgumentParser
internal import Coffer

struct ImportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Store the secrets of a .env file, of one that export wrote, or of pass.",
    discussion: """
      All of them or none, where the store is a vault. In a .env file a variable's name becomes the secret's, in \
      the service of --service. Whether a file is JSON or lines of NAME=value is seen by its first character. A line \
      that cannot be read is named by its number, and nothing is imported then.

      With --from pass, each *.gpg file of a password store is decrypted by gpg, and its path in the store, without \
      .gpg, is the secret's name. Its contents are the value, byte for byte, but for one final line feed if it is the \
      only one. What Python's keyring, or another program of the desktop, keeps in the desktop's keyring comes by \
      secret copy --from keyring --to vault.
      """
  )

  @OptionGroup(title: "Global options") var global: GlobalOptions

  enum Source: String, CaseIterable, ExpressibleByArgument {
    case pass
  }

  @Argument(
    help: ArgumentHelp(
      "The file, or - for standard input. For pass its store; default: PASSWORD_STORE_DIR, or ~/.password-store.",
      valueName: "path"),
    completion: .file())
  var file: String?

  @Option(help: ArgumentHelp("A program's store to read in place of a file: pass.", valueName: "program"))
  var from: Source?

  @Flag(help: "Of each file of pass, only the first line.")
  var firstLine = false

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
    let store = try global.store()
    let secrets: [ExchangedSecret]
    switch from {
    case nil: secrets = try secretsOfFile()
    case .pass:
      // Before a passphrase of gpg's is typed for nothing.
      try (store as? VaultBackend)?.unlock()
      secrets = try secretsOfPass()
    }
    let summary: Summary
    if !dryRun, let store = store as? any TransactionalSecretBackend {
      summary = try store.transaction { transaction throws(SecretError) in
        let summary = try self.summary(of: secrets, lookUp: transaction.lookUp)
        if summary.conflicts.isEmpty {
          let progress = Progress("Imported")
          defer { progress.clear() }
          for (index, secret) in summary.stored.enumerated() {
            progress.show(index, of: summary.stored.count)
            try transaction.store(secret.value.bytes, for: secret.identifier, metadata: secret.metadata)
          }
        }
        return summary
      }
    } else {
      summary = try self.summary(of: secrets, lookUp: store.lookUp)
      if !dryRun && summary.conflicts.isEmpty { try Self.store(summary.stored, oneByOneIn: store) }
    }
    if !summary.conflicts.isEmpty { throw Self.conflict(summary.conflicts) }
    note(
      "\(dryRun ? "Would import" : "Imported") \(summary.stored.count): \(summary.new) new, "
        + "\(summary.replaced) replaced. \(summary.same) were there already."
    )
  }

  private func secretsOfFile() throws -> [ExchangedSecret] {
    guard let file else {
      throw Failure.usage("There is no file to import. Name one, or - for standard input.")
    }
    if firstLine { throw Failure.usage("--first-line is for --from pass. Give both.") }
    let name = file == "-" ? "standard input" : file
    let contents = try ValueInput.read(file: file)
    switch ExchangeFormat.of(contents) {
    case .json:
      return try ExchangeFile.secrets(in: contents, of: name, service: global.serviceName)
    case .dotenv:
      return try Dotenv.entries(in: contents, of: name).map {
        ExchangedSecret(identifier: try global.identifier($0.name), value: $0.value, metadata: nil)
      }
    }
  }

  private func secretsOfPass() throws -> [ExchangedSecret] {
    let source = try PasswordStore(file)
    let names = try source.names()
    let progress = Progress("Decrypted")
    defer { progress.clear() }
    return try names.enumerated().map { index, name in
      progress.show(index, of: names.count)
      let identifier = try global.identifier(name)
      let contents = try source.contents(of: name)
      let value = firstLine ? contents.firstLine : ValueInput.droppingOnlyLineFeed(contents)
      return ExchangedSecret(identifier: identifier, value: SharedSecret(value), metadata: nil)
    }
  }

  private func summary(
    of secrets: [ExchangedSecret],
    lookUp: (SecretIdentifier) throws(SecretError) -> SecretBytes?
  ) throws(SecretError) -> Summary {
    var summary = Summary()
    for secret in secrets {
      guard let existing = try lookUp(secret.identifier) else {
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
    let progress = Progress("Imported")
    defer { progress.clear() }
    for (index, secret) in secrets.enumerated() {
      progress.show(index, of: secrets.count)
      do throws(SecretError) {
        try store.store(secret.value.bytes, for: secret.identifier, metadata: secret.metadata)
      } catch {
        progress.clear()
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

extension SecretBytes {
  /// What is before the first line feed.
  fileprivate var firstLine: SecretBytes {
    withBytes { bytes in
      let end = bytes.indices.first { bytes[$0] == UInt8(ascii: "\n") } ?? bytes.count
      return SecretBytes(copying: bytes.extracting(0..<end))
    }
  }
}
