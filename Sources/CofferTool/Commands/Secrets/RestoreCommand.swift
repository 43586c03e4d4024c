internal import ArgumentParser
internal import Coffer
internal import FoundationEssentials

struct RestoreCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "restore",
    abstract: "Store earlier versions of secrets again.",
    discussion: """
      Restores the version before the last change of each secret, also of a removed one. With --as-of, restores the \
      versions that were current at that time: without names, of every secret in the service that was changed or \
      removed since, as after a wrong import. A secret that did not exist then is kept. All secrets are restored in \
      one step, or none. The values that are replaced stay in the history.
      """
  )

  @OptionGroup(title: "Global options") var global: GlobalOptions

  @Argument(help: "The secrets' names.", completion: NameCompletion.kind)
  var names: [String] = []

  @Option(help: ArgumentHelp("The number of the version, as secret history prints it.", valueName: "number"))
  var version: Int?

  @Option(help: ArgumentHelp("A time in the past: \(TimeText.pastForms).", valueName: "time"))
  var asOf: String?

  /// A version to store again.
  private struct Restored {
    let identifier: SecretIdentifier
    let version: SecretVersion
    let value: SharedSecret
  }

  func run() throws {
    let wanted = try wantedVersions()
    let backend = try global.backend.openVersioned()
    var restored: [Restored] = []
    for identifier in try identifiers(in: backend) {
      let versions = try backend.versions(of: identifier)
      if versions.isEmpty { throw MissingSecret.failure(identifier, in: backend) }
      guard let version = try wanted(versions, identifier) else { continue }
      guard let value = try backend.lookUp(identifier, version: version.number) else {
        throw SecretError(
          .conflict, "Version \(version.number) of “\(identifier.account)” was just dropped.",
          advice: "Nothing was restored; try again.")
      }
      restored.append(Restored(identifier: identifier, version: version, value: SharedSecret(value)))
    }
    try backend.transaction { transaction throws(SecretError) in
      for secret in restored {
        try transaction.store(
          secret.value.bytes, for: secret.identifier, metadata: secret.version.metadata)
      }
    }
    for secret in restored {
      note(
        """
        Restored “\(secret.identifier.account)”: version \(secret.version.number) of \
        \(secret.version.date.ISO8601Format()).
        """)
    }
    if restored.isEmpty { note("Nothing had to be restored.") }
  }

  /// Checks the options. Returns the function that chooses among the versions of a secret, newest first:
  /// `nil` if the secret is to stay as it is.
  private func wantedVersions() throws -> ([SecretVersion], SecretIdentifier) throws -> SecretVersion? {
    if let asOf {
      if version != nil { throw Failure.usage("--as-of and --version exclude each other. Use one of them.") }
      guard let moment = TimeText.pastMoment(asOf, now: Date()) else {
        throw Failure.usage("“\(asOf)” is not a valid time for --as-of. Write \(TimeText.pastForms).")
      }
      return { versions, _ in
        guard let then = versions.first(where: { $0.date <= moment }), then.kind == .earlier else {
          return nil
        }
        return then
      }
    }
    if names.isEmpty { throw Failure.usage("There is no name. Write the secrets' names, or --as-of TIME.") }
    if version != nil && names.count > 1 {
      throw Failure.usage("--version is the number of a version of one secret. Write one name.")
    }
    return { versions, identifier in
      if let found = versions.first(where: { $0.kind == .earlier && (version ?? $0.number) == $0.number }) {
        return found
      }
      if versions.first?.number == version { return nil }
      throw MissingSecret.failure(identifier, version: version)
    }
  }

  /// The named secrets, or every secret that the service has or had.
  private func identifiers(in backend: any VersionedSecretBackend) throws -> [SecretIdentifier] {
    if names.isEmpty {
      return try backend.items(inService: global.serviceName).map(\.identifier)
        + backend.removedItems(inService: global.serviceName).map(\.identifier)
    }
    return try global.identifiers(names)
  }
}
