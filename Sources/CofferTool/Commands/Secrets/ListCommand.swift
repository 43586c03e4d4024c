internal import ArgumentParser
internal import Coffer
internal import FoundationEssentials

struct ListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "list", abstract: "Print the names of secrets, never their values.",
    discussion:
      """
      Prints one name a line, sorted by bytes. A name may contain line feeds: use --null or --json to separate names \
      reliably. With --long, each line has the time of the last change or the removal, the expiry or -, the name and \
      the label, separated by tabs and with control characters escaped.
      """)

  @OptionGroup(title: "Global options") var global: GlobalOptions
  @OptionGroup(title: "Global options") var format: JSONOption

  @Argument(help: "Print only names that begin with this.", completion: CompletedValue.names.kind)
  var prefix = ""

  @Flag(name: [.customShort("0"), .long], help: "End each name with a NUL instead of a line feed.")
  var null = false

  @Flag(help: "Print only secrets that have expired.")
  var expired = false

  @Option(
    help: ArgumentHelp(
      "Print only secrets that have expired or expire within this time, such as 14d.", valueName: "span"))
  var expiring: String?

  @Option(
    help: ArgumentHelp(
      """
      Print only secrets that have the same value as at this time or earlier: \(TimeText.pastForms); in a vault, also the \
      number of a change, which does not depend on clocks, as secret key remove prints it.
      """, valueName: "time"))
  var unchangedSince: String?

  @Flag(help: "Print the secrets that were removed and can be restored instead.")
  var removed = false

  @Flag(help: "Print only secrets of which a merge had to choose between values.")
  var conflicts = false

  @Flag(name: .shortAndLong, help: "Print times and labels as well.")
  var long = false

  /// The number of options that leave secrets out.
  private var filterCount: Int {
    [removed, conflicts, expired, expiring != nil, unchangedSince != nil].count(where: \.self)
  }

  func run() throws {
    let output = Output.standard
    if null && output.isTerminal {
      throw Failure.usage("--null is for other programs. Use a pipe or a file, or omit it.")
    }
    if long && null { throw Failure.exclusive("--long and --null") }
    if filterCount > 1 {
      throw Failure.exclusive("--removed, --conflicts, --expired, --expiring and --unchanged-since")
    }
    let span = expired ? 0 : expiring.flatMap(TimeText.span)
    if let expiring, span == nil {
      throw Failure.usage("“\(expiring)” is not a valid time for --expiring. Write 12h, 14d or 8w.")
    }
    let backend = try removed ? global.openVersioned() : UnreadableItems.leaveOut(of: global.open())
    let service = try global.serviceName
    let now = Date()
    let gone = try removed ? backend.removedItems(inService: service).filter { isWanted($0.identifier) } : []
    let items = try removed ? [] : items(in: backend, expiringWithin: span, now: now)
    if format.json {
      try output.json(items.map(\.json) + gone.map(\.json))
    } else if long {
      let lines =
        items.map { item in
          let metadata = item.metadata
          let expiry = metadata.expires.map { Expiry.text($0, now: now) }
          return Self.line(metadata.modified, expiry, item.identifier, metadata.label)
        } + gone.map { Self.line($0.removed, nil, $0.identifier, nil) }
      try output.write(lines.joined())
    } else {
      try print(names: items.map(\.identifier.account) + gone.map(\.identifier.account))
    }
    VaultNotes.noteCopy(backend)
  }

  private func print(names: [String]) throws {
    let output = Output.standard
    if null { return try output.write(names.map { $0 + "\0" }.joined()) }
    let isTerminal = output.isTerminal
    try output.write(names.map { (isTerminal ? $0.printable : $0) + "\n" }.joined())
    if names.isEmpty && isTerminal && filterCount == 0 && UnreadableItems.status == nil {
      try inform("There are no secrets in the service “\(global.serviceName)”.")
    }
  }

  private func isWanted(_ identifier: SecretIdentifier) -> Bool {
    identifier.account.utf8.starts(with: prefix.utf8)
  }

  /// The secrets to list. With `span`, in seconds, only those that have expired or expire within it.
  private func items(in backend: any SecretBackend, expiringWithin span: Int?, now: Date) throws -> [SecretItem] {
    var items = try backend.items(inService: global.serviceName).filter { isWanted($0.identifier) }
    if conflicts { items.removeAll { !$0.isInConflict } }
    if let span { items.removeAll { Expiry.state(of: $0.metadata, now: now, soon: span) == .none } }
    if let unchangedSince {
      let versioned = backend as? VaultBackend
      let change = versioned == nil ? nil : Int(unchangedSince)
      let moment =
        try change == nil
        ? TimeText.pastMoment(unchangedSince, of: "--unchanged-since", now: now) : .distantPast
      func isFormer(_ version: SecretVersion) -> Bool {
        change.map { version.number <= $0 } ?? (version.date <= moment)
      }
      let known = try versioned.map { try FormerValues(of: $0, isFormer) }
      items = try items.filter { item in
        let modified = item.metadata.modified ?? .distantPast
        guard let versioned, let known else { return modified <= moment }
        if change == nil && modified <= moment { return true }
        // A secret without a history that was moved has only the time of its value.
        if modified <= known.latest, try versioned.versions(of: item.identifier).count == 1 { return true }
        return try versioned.lookUp(item.identifier).map(known.contains) ?? false
      }
    }
    return items
  }

  private static func line(
    _ time: Date?, _ expiry: String?, _ identifier: SecretIdentifier, _ label: String?
  ) -> String {
    let fields = [time?.ISO8601Format() ?? "-", expiry ?? "-", identifier.account, label ?? ""]
    return fields.map(\.printable).joined(separator: "\t") + "\n"
  }
}

/// The values that secrets had at some time, under any name: a value that was moved, copied or imported since is known
/// to whoever could read it then.
private struct FormerValues {
  private let key = SecretBytes.random(count: 32)
  private var fingerprints: Set<SecretFingerprint> = []
  /// When the last of them was stored.
  private(set) var latest = Date.distantPast

  init(of vault: VaultBackend, _ isFormer: (SecretVersion) -> Bool) throws(SecretError) {
    for identifier in try vault.formerIdentifiers(inService: nil) {
      for version in try vault.versions(of: identifier) where version.kind != .removal && isFormer(version) {
        guard let value = try vault.secret(identifier, version: version.number)?.value else { continue }
        fingerprints.insert(value.fingerprint(under: key))
        latest = max(latest, version.date)
      }
    }
  }

  func contains(_ value: SecretBytes) -> Bool { fingerprints.contains(value.fingerprint(under: key)) }
}
