internal import ArgumentParser
internal import Coffer
internal import Dispatch
internal import FoundationEssentials
internal import Synchronization

struct WatchCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "watch",
    abstract: "Print a line at each change, until it is ended.",
    discussion: """
      A line has the time, stored or removed, and the name, with control characters spelt out; with --json it is an \
      object. Changes that come faster than they can be looked at may be told as one. Values are not printed.
      """
  )

  @OptionGroup(title: "Global options") var global: GlobalOptions
  @OptionGroup(title: "Global options") var format: JSONOption

  @Argument(help: "Only this secret. Default: all of the service.")
  var name: String?

  func run() throws {
    let only = try name.map { name throws(SecretError) in try global.identifier(name) }
    guard let store = try global.store() as? any ObservableSecretBackend else {
      throw SecretError(.unsupported, "The store in use does not tell of changes.")
    }
    let watch = Watch(store: store, service: global.serviceName, only: only, isJSON: format.json)
    // Before the first look, so that nothing between the two is missed.
    let changes = store.changes()
    try watch.start()
    note("Watching. Ctrl-C ends it.")

    let ended = DispatchSemaphore(value: 0)
    let failure = Mutex<(any Error)?>(nil)
    Task.detached {
      do {
        for await change in changes { try watch.tell(of: change) }
      } catch {
        failure.withLock { $0 = error }
      }
      ended.signal()
    }
    ended.wait()
    if let error = failure.withLock({ $0 }) { throw error }
  }
}

/// What was known of the secrets at the last look, to tell what a change of everything changed.
private final class Watch: Sendable {
  private struct Line: Encodable {
    let time: Date
    let event: String
    let service: String
    let account: String
  }
  private let store: any ObservableSecretBackend
  private let service: String
  private let only: SecretIdentifier?
  private let isJSON: Bool
  private let known = Mutex<[SecretIdentifier: SecretMetadata]>([:])

  init(store: any ObservableSecretBackend, service: String, only: SecretIdentifier?, isJSON: Bool) {
    self.store = store
    self.service = service
    self.only = only
    self.isJSON = isJSON
  }

  func start() throws(SecretError) {
    let found = try look()
    known.withLock { $0 = found }
  }

  private func look() throws(SecretError) -> [SecretIdentifier: SecretMetadata] {
    if let only {
      guard let item = try store.item(only) else { return [:] }
      return [only: item.metadata]
    }
    var found: [SecretIdentifier: SecretMetadata] = [:]
    for item in try store.items(inService: service) { found[item.identifier] = item.metadata }
    return found
  }

  func tell(of change: SecretChange) throws {
    if let identifier = change.identifier {
      guard only.map({ $0 == identifier }) ?? identifier.service.utf8.elementsEqual(service.utf8) else {
        return
      }
    }
    let now: [SecretIdentifier: SecretMetadata]
    do throws(SecretError) { now = try look() } catch {
      return note("secret: \(error)")  // it may come back
    }
    let before = known.withLock { known in
      defer { known = now }
      return known
    }
    if let identifier = change.identifier {
      return try print(now[identifier] == nil ? "removed" : "stored", identifier)
    }
    for identifier in Set(before.keys).union(now.keys).sorted() where before[identifier] != now[identifier] {
      try print(now[identifier] == nil ? "removed" : "stored", identifier)
    }
  }

  private func print(_ event: String, _ identifier: SecretIdentifier) throws {
    let line = Line(time: Date(), event: event, service: identifier.service, account: identifier.account)
    if isJSON { return try Output.standard.jsonLine(line) }
    try Output.standard.write("\(line.time.ISO8601Format())\t\(event)\t\(identifier.account.printable)\n")
  }
}
