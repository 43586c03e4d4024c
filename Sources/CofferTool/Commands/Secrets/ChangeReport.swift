internal import Coffer
internal import FoundationEssentials
internal import Synchronization

/// The output of `watch`. Keeps the metadata of the last read, because a change may be reported without an
/// identifier.
final class ChangeReport: Sendable {
  private struct Line: Encodable {
    let time: Date
    let event: String
    let service: String
    let account: String
  }
  private let backend: any ObservableSecretBackend
  private let service: String
  private let only: SecretIdentifier?
  private let isJSON: Bool
  private let known = Mutex<[SecretIdentifier: SecretMetadata]>([:])

  /// Reports changes of `only`, or of every secret in `service` if it is `nil`.
  init(backend: any ObservableSecretBackend, service: String, only: SecretIdentifier?, isJSON: Bool) {
    self.backend = backend
    self.service = service
    self.only = only
    self.isJSON = isJSON
  }

  /// Reads the metadata to compare the first change with.
  func start() throws(SecretError) {
    let current = try read(from: backend)
    known.withLock { $0 = current }
  }

  private func read(
    from backend: any SecretBackend
  ) throws(SecretError) -> [SecretIdentifier: SecretMetadata] {
    if let only {
      guard let item = try backend.item(only) else { return [:] }
      return [only: item.metadata]
    }
    var found: [SecretIdentifier: SecretMetadata] = [:]
    for item in try backend.items(inService: service) { found[item.identifier] = item.metadata }
    return found
  }

  /// Prints a line for each secret that `change` affects.
  func print(_ change: SecretChange) throws {
    if let identifier = change.identifier { return try print(changeOf: identifier) }
    let current: [SecretIdentifier: SecretMetadata]
    do throws(SecretError) { current = try read(from: backend.withoutPrompts) } catch {
      return note("secret: \(Advice.message(for: error))")  // a later read may succeed
    }
    let previous = known.withLock { known in
      defer { known = current }
      return known
    }
    for identifier in Set(previous.keys).union(current.keys).sorted()
    where previous[identifier] != current[identifier] {
      try print(current[identifier] == nil ? "removed" : "stored", identifier)
    }
  }

  private func print(changeOf identifier: SecretIdentifier) throws {
    guard only.map({ $0 == identifier }) ?? identifier.service.utf8.elementsEqual(service.utf8) else {
      return
    }
    let item: SecretItem?
    do throws(SecretError) { item = try backend.withoutPrompts.item(identifier) } catch {
      return note("secret: \(Advice.message(for: error))")  // a later read may succeed
    }
    known.withLock { $0[identifier] = item?.metadata }
    try print(item == nil ? "removed" : "stored", identifier)
  }

  private func print(_ event: String, _ identifier: SecretIdentifier) throws {
    let line = Line(time: Date(), event: event, service: identifier.service, account: identifier.account)
    if isJSON { return try Output.standard.jsonLine(line) }
    try Output.standard.write("\(line.time.ISO8601Format())\t\(event)\t\(identifier.account.printable)\n")
  }
}

extension SecretBackend {
  /// This backend, if it reports changes. Throws `.unsupported` if it does not.
  func observable() throws(SecretError) -> any ObservableSecretBackend {
    if let observable = self as? any ObservableSecretBackend { return observable }
    throw SecretError(.unsupported, "The selected backend does not report changes.")
  }
}
