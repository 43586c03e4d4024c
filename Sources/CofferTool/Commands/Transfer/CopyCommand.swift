internal import ArgumentParser
internal import Coffer
internal import CofferSystem
internal import FoundationEssentials

struct CopyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "copy", abstract: "Copy secrets from one backend to another.",
    discussion: """
      A backend is one of \(BackendRegistry.providers.forms.joined(separator: ", ")). Each copied value is read back \
      and compared. A secret that the target already holds with the same value is skipped, so that an interrupted copy \
      can be repeated. A secret that the target holds with another value, or that was removed there after its last \
      change in the source, is left as it is unless --overwrite is given, and the exit status is then 73. From a \
      keyring, items without a service and a user name are not copied. Of several items with one name, only the one \
      that secret get reads is copied. A message names each of the other items. Nothing is removed. Earlier versions \
      are not copied; a vault keeps what --overwrite replaces in its history. With --former-key, copies only named \
      secrets, from a backup of a vault whose keys were changed since. Every other command refuses such a backup.
      """)

  @Option(help: ArgumentHelp("The backend to read.", valueName: "backend"))
  var from: BackendSelection

  @Option(help: ArgumentHelp("The backend to write.", valueName: "backend"))
  var to: BackendSelection

  @Argument(help: "Copy only these secrets: references, or names in the service of --service. Default: all secrets.")
  var names: [String] = []

  @Option(
    name: [.customShort("s", allowingJoined: true), .long],
    help: """
      Copy only the secrets of this service. Default: all services; for names, COFFER_SERVICE, or else \
      \(SecretReference.defaultService).
      """)
  var service: String?

  @Flag(
    help: """
      Read the named secrets from a backup of a vault that a removed key may open. It is compared with nothing, not even with \
      a pin, and nothing is recorded of it.
      """)
  var formerKey = false

  @Flag(help: "Print what would be copied, and copy nothing.")
  var dryRun = false

  @Flag(help: "Replace secrets that have another value in the target.")
  var overwrite = false

  @OptionGroup(title: "Global options") var format: JSONOption
  @OptionGroup(title: "Global options") var messages: QuietOption

  private struct Report: Encodable {
    var copied: [String] = []
    var replaced: [String] = []
    var same: [String] = []
    var different: [String] = []
    /// The secrets that were removed from the target after their last change in the source.
    var removed: [String] = []
    var impossible: [String] = []
    /// The titles of a keyring's items that are not copied.
    var unlisted: [String] = []
    var dryRun: Bool
    var hasCopies: Bool { !copied.isEmpty || !replaced.isEmpty }
    var isEmpty: Bool { !hasCopies && same.isEmpty && different.isEmpty && removed.isEmpty }
  }

  func run() throws {
    if formerKey && names.isEmpty {
      throw Failure.usage("--former-key copies only secrets that you name. Write their names.")
    }
    var options = VaultOptions()
    (options.isBackup, options.readsBackups) = (formerKey, true)
    let source = try UnreadableItems.leaveOut(of: BackendOptions.open(from, options: options))
    let named = try names.map {
      try SecretReference.identifier($0) ?? SecretIdentifier(service: SecretReference.service(service), account: $0)
    }
    if formerKey {
      guard let vault = source as? VaultBackend else {
        throw Failure.usage("--former-key reads a vault. Name it with --from vault:PATH.")
      }
      note(
        """
        Whoever had a key of \(vault.path), even one that was removed since, may have written every value, name and \
        time in it. Compare each copied value before you use it.
        """)
    }
    let target = try BackendOptions.open(to)
    try requireDifferent(source, target)
    let secrets = try named.map(source.existing)
    var report = Report(dryRun: dryRun)
    var status = ExitStatus.done
    let progress = Progress(verb: "Copied")
    do throws(SecretError) {
      let removed = try target.removedItems(inService: service)
      let removals = Dictionary(uniqueKeysWithValues: removed.map { ($0.identifier, $0.removed) })
      var count = 0
      func copyOne(_ secret: Secret) throws(SecretError) {
        progress.show(count)
        count += 1
        let list = try copy(secret, to: target, removal: removals[secret.identifier], &status)
        let hadCopies = report.hasCopies
        report[keyPath: list].append(SecretReference.text(of: secret.identifier))
        if report.hasCopies && !hadCopies && !dryRun { changed("Secrets were copied.") }
      }
      for secret in secrets { try copyOne(secret) }
      if named.isEmpty { try source.forEachSecret(inService: service, copyOne) }
      progress.clear()
      // The user may now remove the originals: the end of a transaction makes sure that the copies are on the disk.
      if !report.same.isEmpty && !dryRun { try target.withTransaction { _ in } }
      if named.isEmpty, let keyring = source as? any ItemBackend {
        report.unlisted = try Self.passOver(keyring.unlistedItems(inService: service))
      }
    } catch {
      progress.clear()
      if !report.isEmpty { try print(report) }
      throw error
    }
    try print(report)
    if !(report.different + report.removed).isEmpty && status == .done { status = .wouldOverwrite }
    if status != .done { throw ExitCode(status.rawValue) }
  }

  /// Copies a secret unless the rules of this command exclude it. Returns the list of the report for its name.
  /// `removal` is when it was removed from the target.
  private func copy(
    _ secret: Secret, to target: any SecretBackend, removal: Date?, _ status: inout ExitStatus
  ) throws(SecretError) -> WritableKeyPath<Report, [String]> {
    if let removal, removal > secret.metadata.modified ?? .distantPast, !overwrite { return \.removed }
    let (identifier, value) = (secret.identifier, secret.value)
    let existing = try target.lookUp(identifier)
    if existing?.isEqual(to: value) == true { return \.same }
    if existing != nil && !overwrite { return \.different }
    let list = existing == nil ? \Report.copied : \.replaced
    if dryRun { return list }
    let name = SecretReference.text(of: identifier)
    do throws(SecretError) {
      try target.store(value, for: identifier, metadata: .replace(secret.metadata))
    } catch  where [SecretError.Code.tooLarge, .invalidMetadata, .invalidIdentifier].contains(error.code) {
      // The target cannot hold this secret, but may be able to hold the others.
      if status == .done { status = ExitStatus(error.code) }
      note("secret: “\(name)” cannot be copied: \(error)")
      return \.impossible
    }
    guard let copy = try target.lookUp(identifier), copy.isEqual(to: value) else {
      throw SecretError(
        .io, "The value read back from the copy of “\(name)” differs from the value stored there.",
        advice: "Keep the original, and run secret verify on the copy.")
    }
    return list
  }

  /// Prints why each item is not copied, and returns the titles.
  private static func passOver(_ items: [UnlistedItem]) -> [String] {
    for item in items {
      let reason =
        item.identifier.map { "another item with the name “\(SecretReference.text(of: $0))” is read instead of it" }
        ?? "it has no service and user name"
      note("secret: “\(item.title.printable)” was not copied: \(reason).")
    }
    return items.map(\.title)
  }

  private func print(_ report: Report) throws {
    var report = report
    for names in [\Report.copied, \.replaced, \.same, \.different, \.removed, \.impossible] {
      report[keyPath: names].sort()
    }
    if format.json { try Output.standard.json(report) }
    for name in report.different {
      note("secret: “\(name)” has another value in the target. Add --overwrite to replace it.")
    }
    for name in report.removed {
      note(
        "secret: “\(name)” was removed from the target after its last change in the source. Add --overwrite to bring it back."
      )
    }
    var parts = ["\(dryRun ? "Would copy" : "Copied and compared"): \(report.copied.count)"]
    if !report.replaced.isEmpty { parts.append("replaced: \(report.replaced.count)") }
    parts.append("already the same: \(report.same.count)")
    let left = report.different.count + report.removed.count
    if left > 0 { parts.append("left unchanged: \(left)") }
    if !report.impossible.isEmpty { parts.append("not possible: \(report.impossible.count)") }
    if !report.unlisted.isEmpty { parts.append("not copied: \(report.unlisted.count)") }
    inform(parts.joined(separator: ", ") + ".")
  }

  private func requireDifferent(_ source: any SecretBackend, _ target: any SecretBackend) throws {
    // Two collections of a keyring are different stores.
    var areSame = from.name == to.name && (from.place == nil || to.place == nil || from.place == to.place)
    if let source = source as? VaultBackend, let target = target as? VaultBackend {
      areSame = try source.description().id == target.description().id && source.isSamePlace(as: target)
    }
    if areSame { throw Failure.usage("--from and --to are the same backend. Use two different ones.") }
  }
}
