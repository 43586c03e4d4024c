internal import ArgumentParser
internal import Coffer

struct ImportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "import", abstract: "Store the secrets of a .env file, of an exported file, or of pass.",
    discussion: """
      Into a vault, imports all secrets or none. In a .env file, a variable's name is the secret's name, in the service \
      of --service. The first character of the file determines whether it is JSON or lines of NAME=value. If a line is \
      invalid, nothing is imported, and the message names the line by its number. A vault keeps the values that \
      --overwrite replaces: to bring them back, use secret restore --as-of. --service replaces the one service of an \
      exported file. A value that dotenvx, sops, ansible-vault or age has encrypted, and a reference, are refused, because \
      they are not the secret.

      With --from pass, gpg decrypts each *.gpg file of a password store. The secret's name is the file's path in the \
      store without .gpg. The value is the decrypted content; one final line feed is dropped if it is the only one. To \
      import the secrets of Python's keyring or of other desktop programs: secret copy --from keyring --to vault
      """)

  @OptionGroup(title: "Global options") var global: GlobalOptions

  enum Source: String, CaseIterable, ExpressibleByArgument {
    case pass
  }

  @Argument(
    help: ArgumentHelp(
      """
      The file, or - for standard input. With --from pass, the directory of the password store; default: \
      PASSWORD_STORE_DIR, or ~/.password-store.
      """,
      valueName: "path"),
    completion: .file())
  var file: String?

  @Option(help: ArgumentHelp("The program to import from, instead of a file: pass.", valueName: "program"))
  var from: Source?

  @Flag(help: "Import only the first line of each file of pass.")
  var firstLine = false

  @Flag(help: "Import values that are encrypted, or references, as they are.")
  var verbatim = false

  @Flag(help: "Print what would be imported, and import nothing.")
  var dryRun = false

  @Flag(help: "Replace existing secrets that have another value.")
  var overwrite = false

  private struct Plan {
    var replaced = 0
    var same = 0
    /// Existing secrets with another value, unless they may be replaced.
    var conflicts: [SecretIdentifier] = []
    var stored: [ExchangedSecret] = []
  }

  func run() throws {
    let backend = try global.open(to: .change)
    // Reports a backend that cannot be opened before gpg prompts for a passphrase.
    if from == .pass { _ = try backend.identifiers(inService: global.serviceName) }
    let secrets = try from == .pass ? secretsOfPass() : secretsOfFile()
    if !verbatim { try Self.requireValues(secrets) }
    var plan = Plan()
    var stored = 0
    do throws(SecretError) {
      if dryRun {
        plan = try self.plan(for: secrets, lookUp: backend.lookUp)
      } else {
        try backend.withTransaction { transaction throws(SecretError) in
          plan = try self.plan(for: secrets, lookUp: transaction.lookUp)
          stored = 0
          guard plan.conflicts.isEmpty else { return }
          for secret in plan.stored {
            try transaction.store(
              secret.value, for: secret.identifier,
              metadata: secret.metadata.map { .replace($0) } ?? .newValue)
            stored += 1
          }
        }
      }
    } catch {
      if stored > 0, !backend.features.contains(.transactions) {
        note("secret: Imported \(stored) of \(plan.stored.count) secrets before the error.")
      }
      throw error
    }
    if !plan.conflicts.isEmpty {
      let names = plan.conflicts.map { "“\($0.account)”" }.listed(most: 20)
      throw Failure(
        .wouldOverwrite,
        "Existing secrets have other values: \(names).", advice: "Add --overwrite to replace them.")
    }
    let new = plan.stored.count - plan.replaced
    inform(
      "\(dryRun ? "Would import" : "Imported") \(plan.stored.count): \(new) new, \(plan.replaced) replaced. "
        + "Unchanged: \(plan.same).")
  }

  /// Throws a failure that names the secrets whose values are references, or were encrypted by another program.
  private static func requireValues(_ secrets: [ExchangedSecret]) throws(Failure) {
    let beginnings = [
      "encrypted:", "ENC[", "$ANSIBLE_VAULT;", "age-encryption.org/v1", "-----BEGIN AGE ENCRYPTED FILE-----",
      SecretReference.scheme,
    ]
    let names = secrets.filter { secret in
      secret.value.withBytes { bytes in beginnings.contains { bytes.starts(with: $0) } }
    }.map { "“\($0.identifier.account)”" }
    if names.isEmpty { return }
    throw .usage(
      """
      The values of \(names.listed(most: 20)) are encrypted or references, and not the secrets. Decrypt them \
      first, leave them out, or add --verbatim.
      """)
  }

  private func secretsOfFile() throws -> [ExchangedSecret] {
    guard let file else { throw Failure.usage("There is no file to import. Name one, or - for standard input.") }
    if firstLine { throw Failure.usage("--first-line requires --from pass. Add it.") }
    let name = file == "-" ? "standard input" : file
    let contents = try ValueInput.read(file: file)
    // No dotenv file begins with a brace. Some editors begin a file with a byte order mark.
    let first = contents.withBytes { bytes in
      bytes.indices.first { !" \t\r\n\u{FEFF}".utf8.contains(bytes[$0]) }.map { bytes[$0] }
    }
    guard first == UInt8(ascii: "{") else {
      return try Dotenv.entries(in: contents, of: name).map {
        ExchangedSecret(identifier: try global.identifier($0.name), value: $0.value)
      }
    }
    let secrets = try ExchangeFile.secrets(in: contents, of: name, service: global.serviceName)
    guard let service = global.service else { return secrets }
    if Set(secrets.map { Array($0.identifier.service.utf8) }).count > 1 {
      throw Failure.usage("\(name) has several services.", advice: "Leave out --service.")
    }
    return try secrets.map {
      ExchangedSecret(
        identifier: try SecretIdentifier(service: service, account: $0.identifier.account), value: $0.value,
        metadata: $0.metadata)
    }
  }

  private func secretsOfPass() throws -> [ExchangedSecret] {
    let source = try PasswordStore(file)
    let names = try source.names()
    let progress = Progress(verb: "Decrypted")
    defer { progress.clear() }
    return try names.enumerated().map { index, name in
      progress.show(index, of: names.count)
      let identifier = try global.identifier(name)
      let contents = try source.contents(of: name)
      let end = contents.withBytes { $0.firstIndex(of: UInt8(ascii: "\n")) ?? $0.count }
      let value = firstLine ? contents.prefix(end) : ValueInput.droppingOnlyLineFeed(contents)
      return ExchangedSecret(identifier: identifier, value: value)
    }
  }

  private func plan(
    for secrets: [ExchangedSecret], lookUp: (SecretIdentifier) throws(SecretError) -> SecretBytes?
  ) throws(SecretError) -> Plan {
    var plan = Plan()
    for secret in secrets {
      let existing = try lookUp(secret.identifier)
      if existing?.isEqual(to: secret.value) == true {
        plan.same += 1
      } else if existing != nil && !overwrite {
        plan.conflicts.append(secret.identifier)
      } else {
        if existing != nil { plan.replaced += 1 }
        plan.stored.append(secret)
      }
    }
    return plan
  }
}
