internal import ArgumentParser
internal import Coffer

struct CopyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "copy",
    abstract: "Copy secrets from one store to another.",
    discussion: """
      A store is keyring, vault, or vault:PATH. Every value is read back after it was written. What is there already \
      with the same value is passed over, so an interrupted copy is simply run again; what is there with another \
      value stays as it is, unless --overwrite is given, and the exit status is 73 then. Nothing is removed.
      """
  )

  @Option(help: ArgumentHelp("The store to read.", valueName: "store"))
  var from: StoreName

  @Option(help: ArgumentHelp("The store to write.", valueName: "store"))
  var to: StoreName

  @Option(
    name: [.customShort("s", allowingJoined: true), .long],
    help: "Only the secrets of this service. Default: those of all services."
  )
  var service: String?

  @Flag(help: "Only say what would be done.")
  var dryRun = false

  @Flag(help: "Replace what is there with another value.")
  var overwrite = false

  @OptionGroup(title: "Global options") var format: JSONOption

  private struct Report: Encodable {
    var copied: [String] = []
    var replaced: [String] = []
    var same: [String] = []
    var different: [String] = []
    var impossible: [String] = []
    var dryRun: Bool
  }

  func run() throws {
    let (source, target) = (try from.store(), try to.store())
    try Self.requireDifferent(source, target)
    var report = Report(dryRun: dryRun)
    var status = ExitStatus.done
    let progress = Progress("Copied")
    do {
      let items = try source.items(inService: service)
      for (index, item) in items.enumerated() {
        progress.show(index, of: items.count)
        try copy(item, from: source, to: target, &report, &status)
      }
      progress.clear()
    } catch {
      progress.clear()
      try tell(report)
      throw error
    }
    try tell(report)
    if !report.different.isEmpty && status == .done { status = .wouldOverwrite }
    if status != .done { throw ExitCode(status.rawValue) }
  }

  private func copy(
    _ item: SecretItem,
    from source: any SecretBackend,
    to target: any SecretBackend,
    _ report: inout Report,
    _ status: inout ExitStatus
  ) throws(SecretError) {
    let identifier = item.identifier
    let name = SecretReference.text(of: identifier)
    guard let value = try source.lookUp(identifier) else { return }  // removed by somebody meanwhile
    let there = try target.lookUp(identifier)
    let isThere = there != nil
    if let there, there.isEqual(to: value) {
      report.same.append(name)
      return
    }
    if isThere && !overwrite {
      report.different.append(name)
      return
    }
    if !dryRun {
      do throws(SecretError) {
        try target.store(value, for: identifier, metadata: item.metadata)
      } catch {
        // One secret that the other store cannot hold does not keep the rest from it.
        guard [.tooLarge, .invalidMetadata, .invalidIdentifier].contains(error.code) else { throw error }
        report.impossible.append(name)
        if status == .done { status = ExitStatus(error.code) }
        note("secret: “\(name)” cannot be copied: \(error)")
        return
      }
      guard let copy = try target.lookUp(identifier), copy.isEqual(to: value) else {
        throw SecretError(
          .io,
          "The secret “\(name)” did not read back as it was written.",
          advice: "Do not remove the original; run `secret verify` on the copy."
        )
      }
    }
    if isThere { report.replaced.append(name) } else { report.copied.append(name) }
  }

  private func tell(_ report: Report) throws {
    if format.json { try Output.standard.json(report) }
    for name in report.different {
      note("secret: “\(name)” is there with another value. Add --overwrite to replace it.")
    }
    let done = dryRun ? "Would be copied" : "Copied and read back"
    var parts = ["\(done): \(report.copied.count)"]
    if !report.replaced.isEmpty { parts.append("replaced: \(report.replaced.count)") }
    parts.append("the same already: \(report.same.count)")
    if !report.different.isEmpty { parts.append("left as they were: \(report.different.count)") }
    if !report.impossible.isEmpty { parts.append("not possible: \(report.impossible.count)") }
    note(parts.joined(separator: ", ") + ".")
  }

  private static func requireDifferent(
    _ source: any SecretBackend,
    _ target: any SecretBackend
  ) throws {
    let areSame: Bool
    switch (source as? VaultBackend, target as? VaultBackend) {
    case (let source?, let target?):
      let (first, second) = (
        try VaultBackend.describe(path: source.path), try VaultBackend.describe(path: target.path)
      )
      areSame = first.id == second.id && Directory.isSameFile(source.path, target.path)
    case (nil, nil): areSame = true
    default: areSame = false
    }
    if areSame { throw Failure.usage("Both are the same store. Name two different ones.") }
  }
}

/// A store as `copy` names it.
enum StoreName: ExpressibleByArgument {
  case keyring
  case vault(path: String?)

  init?(argument: String) {
    switch argument {
    case "keyring": self = .keyring
    case "vault": self = .vault(path: nil)
    case _ where argument.hasPrefix("vault:") && argument.utf8.count > 6:
      self = .vault(path: String(argument.dropFirst(6)))
    default: return nil
    }
  }

  func store() throws -> any SecretBackend {
    let options: GlobalOptions
    switch self {
    case .keyring: options = try GlobalOptions.parse(["--backend", "keyring"])
    case .vault(nil): options = try GlobalOptions.parse(["--backend", "vault"])
    case .vault(let path?): options = try GlobalOptions.parse(["--vault=\(path)"])
    }
    return try options.store()
  }
}
