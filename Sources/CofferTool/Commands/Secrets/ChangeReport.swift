internal import Coffer
internal import FoundationEssentials
internal import Synchronization

/// The output of `watch`. Keeps the metadata of the last read, because a change may be reported without an identifier.
final class ChangeReport: Sendable {
  private let backend: any SecretBackend
  private let service: String
  private let only: SecretIdentifier?
  private let isJSON: Bool
  private let known: Mutex<[SecretIdentifier: SecretMetadata]>

  /// Reports changes of `only`, or of every secret in `service` if it is `nil`. Reads the metadata with which the first
  /// change is compared.
  init(backend: any SecretBackend, service: String, only: SecretIdentifier?, isJSON: Bool) throws(SecretError) {
    (self.backend, self.service, self.only, self.isJSON) = (backend, service, only, isJSON)
    known = Mutex(try Self.read(only, in: service, from: backend))
  }

  private static func read(
    _ only: SecretIdentifier?, in service: String, from backend: any SecretBackend
  ) throws(SecretError) -> [SecretIdentifier: SecretMetadata] {
    if let only { return try [only: backend.item(only)?.metadata].compactMapValues(\.self) }
    return Dictionary(try backend.items(inService: service).map { ($0.identifier, $0.metadata) }) { $1 }
  }

  /// Prints a line for each secret that `change` affects.
  func print(_ change: SecretChange) throws {
    let named = change.identifier
    if let named, only.map({ $0 != named }) ?? !named.service.utf8.elementsEqual(service.utf8) { return }
    let current: [SecretIdentifier: SecretMetadata]
    do throws(SecretError) { current = try Self.read(named ?? only, in: service, from: backend.withoutPrompts) } catch {
      return note("secret: \(error.toolMessage)")  // a later read may succeed
    }
    let previous = known.withLock { known in
      let previous = known
      if let named { known[named] = current[named] } else { known = current }
      return previous
    }
    let changed = Set(previous.keys).union(current.keys).filter { previous[$0] != current[$0] }.sorted()
    for identifier in named.map({ [$0] }) ?? changed {
      let event = current[identifier] == nil ? "removed" : "stored"
      let (time, account) = (Date(), identifier.account)
      if isJSON {
        let line: JSONObject = ["time": time, "event": event, "service": identifier.service, "account": account]
        try Output.standard.jsonLine(line)
      } else {
        try Output.standard.write("\(time.ISO8601Format())\t\(event)\t\(account.printable)\n")
      }
    }
  }
}

extension SecretBackend {
  /// This backend, if it reports changes. Throws `.unsupported` if it does not.
  func observable() throws(SecretError) -> Self {
    if features.contains(.changes) { return self }
    throw SecretError(.unsupported, "The selected backend does not report changes.")
  }
}
