internal import ArgumentParser
internal import Coffer
internal import CofferSystem
internal import FoundationEssentials

struct CopyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "copy", abstract: "Copy secrets from one backend to another.",
    discussion: """
      A backend is one of \(BackendArgument.forms.joined(separator: ", ")). Each copied value is read back and compared. \
      A secret that the target already holds with the same value is skipped, so that an interrupted copy can be \
      repeated. A secret that the target holds with another value, or that was removed there after its last change in the \
      source, is left as it is unless --overwrite is given, and the exit status is then 73. Of a keyring, items without a \
      service and a user name are not copied, and of several items with one name only the one that get reads; each other \
      item is named. Nothing is removed. Earlier versions are not copied; a vault keeps what --overwrite replaces in its \
      history.
      """
  )

  @Option(help: ArgumentHelp("The backend to read.", valueName: "backend"))
  var from: BackendArgument

  @Option(help: ArgumentHelp("The backend to write.", valueName: "backend"))
  var to: BackendArgument

  @Option(
    name: [.customShort("s", allowingJoined: true), .long],
    help: "Copy only the secrets of this service. Default: all services.")
  var service: String?

  @Flag(help: "Print what would be copied, and copy nothing.")
  var dryRun = false

  @Flag(help: "Replace secrets that have another value in the target.")
  var overwrite = false

  @OptionGroup(title: "Global options") var format: JSONOption
  @OptionGroup(title: "Global options") var messages: QuietOption

  /// The number of values that are read at a time.
  private static let partSize = 1000

  private struct Report: Encodable {
    var copied: [String] = []
    var replaced: [String] = []
    var same: [String] = []
    var different: [String] = []
    /// Those that the target has removed later.
    var removed: [String] = []
    var impossible: [String] = []
    /// The titles of the items of the source that have no name here.
    var unlisted: [String] = []
    var dryRun: Bool
  }

  func run() throws {
    let source = try UnreadableItems.leaveOut(of: BackendOptions.open(from.selection))
    let target = try BackendOptions.open(to.selection)
    try requireDifferent(source, target)
    var report = Report(dryRun: dryRun)
    var status = ExitStatus.done
    let progress = Progress(verb: "Copied")
    do throws(SecretError) {
      let items = try source.items(inService: service)
      let removed = try (target as? any VersionedSecretBackend)?.removedItems(inService: service) ?? []
      let removals = Dictionary(uniqueKeysWithValues: removed.map { ($0.identifier, $0.removed) })
      // In parts, so that not all values are in memory at once.
      for start in stride(from: 0, to: items.count, by: Self.partSize) {
        let part = items[start..<min(start + Self.partSize, items.count)]
        let values = try source.lookUp(part.map(\.identifier))
        for (index, item) in zip(part.indices, part) {
          progress.show(index, of: items.count)
          guard let value = values[item.identifier] else { continue }  // removed since, or left out
          if let removal = removals[item.identifier], removal > item.metadata.modified ?? .distantPast,
            !overwrite
          {
            report.removed.append(SecretReference.text(of: item.identifier))
            continue
          }
          try copy(item, value.bytes, to: target, &report, &status)
        }
      }
      progress.clear()
      // The user may remove the originals. The end of a transaction makes sure that the same values are on the disk.
      if !report.same.isEmpty && !dryRun { try target.withTransaction { _ in } }
      if let source = source as? any MultipleItemSecretBackend {
        report.unlisted = try Self.passOver(source.unlistedItems(inService: service))
      }
    } catch {
      progress.clear()
      try print(report)
      throw report.copied.isEmpty && report.replaced.isEmpty ? error : Self.afterCopies(error)
    }
    try print(report)
    if !(report.different + report.removed).isEmpty && status == .done { status = .wouldOverwrite }
    if status != .done { throw ExitCode(status.rawValue) }
  }

  private func copy(
    _ item: SecretItem, _ value: borrowing SecretBytes, to target: any SecretBackend, _ report: inout Report,
    _ status: inout ExitStatus
  ) throws(SecretError) {
    let identifier = item.identifier
    let name = SecretReference.text(of: identifier)
    let existing = try target.lookUp(identifier)
    let exists = existing != nil
    if let existing, existing.isEqual(to: value) { return report.same.append(name) }
    if exists && !overwrite { return report.different.append(name) }
    if !dryRun {
      do throws(SecretError) {
        try target.store(value, for: identifier, metadata: item.metadata)
      } catch  where [SecretError.Code.tooLarge, .invalidMetadata, .invalidIdentifier].contains(error.code) {
        // The target cannot hold this secret, but may be able to hold the others.
        report.impossible.append(name)
        if status == .done { status = ExitStatus(error.code) }
        return note("secret: “\(name)” cannot be copied: \(error)")
      }
      let copy: SecretBytes?
      do throws(SecretError) { copy = try target.lookUp(identifier) } catch { throw Self.afterCopies(error) }
      guard let copy, copy.isEqual(to: value) else {
        throw SecretError(
          .io, "The value read back from the copy of “\(name)” differs from the value stored there.",
          advice: "Keep the original, and run secret verify on the copy.")
      }
    }
    if exists { report.replaced.append(name) } else { report.copied.append(name) }
  }

  /// Says of each item why it is not copied, and returns the titles.
  private static func passOver(_ items: [UnlistedItem]) -> [String] {
    for item in items {
      let reason =
        item.identifier.map {
          "another item with the name “\(SecretReference.text(of: $0))” is read instead of it"
        }
        ?? "it has no service and user name"
      note("secret: “\(item.title.printable)” was not copied: \(reason).")
    }
    return items.map(\.title)
  }

  /// An error's own advice may say that nothing was changed.
  private static func afterCopies(_ error: SecretError) -> SecretError {
    SecretError(
      error.code, error.reason,
      advice: "The copies that were made stay. Run the command again when this is solved.",
      identifier: error.identifier)
  }

  private func print(_ report: Report) throws {
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
    var areSame = from.selection.name == to.selection.name
    // Of a keyring, two collections are different stores.
    if let source = from.selection.place, let target = to.selection.place {
      areSame = areSame && source == target
    }
    if let source = source as? VaultBackend, let target = target as? VaultBackend {
      let (first, second) = (
        try VaultBackend.describe(path: source.path), try VaultBackend.describe(path: target.path)
      )
      areSame = first.id == second.id && Path.isSameFile(source.path, target.path)
    }
    if areSame { throw Failure.usage("--from and --to are the same backend. Use two different ones.") }
  }
}
