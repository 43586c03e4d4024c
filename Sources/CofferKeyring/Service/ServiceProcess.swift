#if Keyring
internal import CofferCore

/// One process that provides the Secret Service, a bus connection to it, and a session once a secret is transferred.
final class ServiceProcess: Sendable {
  let bus: BusConnection
  /// The unique bus name of the process.
  let owner: String
  let kind: ServiceKind
  private let options: KeyringOptions
  /// The user's `XDG_DATA_HOME`.
  let dataDirectory: String
  private let lock = DeadlineLock()
  /// The session, or `nil` if none was begun or the last one failed. Accessed only with `lock` held.
  private nonisolated(unsafe) var negotiation: SessionNegotiation?

  /// A connection, and the service that was found on it.
  typealias Found = (bus: BusConnection, owner: Owner?)

  /// The process that has the service's name on a bus.
  typealias Owner = (name: String, kind: ServiceKind)

  /// Connects to the session bus that `environment` names, or uses what was `found`, and starts the service if the bus
  /// can activate it. Takes at most `options.connectTimeout`. `negotiation` is a session that was begun for this
  /// process.
  init(
    _ environment: [String: String], _ options: KeyringOptions, _ found: Found?,
    _ negotiation: SessionNegotiation?, by deadline: Deadline
  ) throws(ServiceFailure) {
    (self.options, self.negotiation) = (options, negotiation)
    let home = environment["HOME"] ?? ""
    dataDirectory = environment["XDG_DATA_HOME"].flatMap { $0.isEmpty ? nil : $0 } ?? home + "/.local/share"
    let deadline = deadline.limited(to: options.connectTimeout)
    let found = if let found, !found.bus.isClosed { found } else { try Self.find(environment, by: deadline) }
    bus = found.bus
    (owner, kind) = if let owner = found.owner { owner } else { try Self.start(on: bus, by: deadline) }
  }

  /// Returns the path by which messages name the session. The path is known before this process has computed the key.
  func sessionPath(by deadline: Deadline) throws(ServiceFailure) -> String {
    try negotiated(by: deadline) { _, path, _ in path }
  }

  func session(by deadline: Deadline) throws(ServiceFailure) -> SecretSession {
    try negotiated(by: deadline) { negotiation, _, deadline throws(ServiceFailure) in
      try negotiation.session(by: deadline)
    }
  }

  /// Calls `body` with a session, its path, and the deadline for opening it. The first call asks the service for the
  /// session. After a failure, the next call asks for another one.
  private func negotiated<R>(
    by deadline: Deadline, _ body: (SessionNegotiation, String, Deadline) throws(ServiceFailure) -> R
  ) throws(ServiceFailure) -> R {
    try lock.withLock(deadline.remaining()) { () throws(ServiceFailure) in
      let deadline = deadline.limited(to: options.connectTimeout)
      let current = negotiation ?? SessionNegotiation()
      negotiation = nil
      let service = SecretServiceProxy(bus: bus, name: owner, timeout: options.connectTimeout, deadline: deadline)
      do throws(ServiceFailure) {
        let path = try current.path(by: deadline, service.openSession)
        let result = try body(current, path, deadline)
        negotiation = current
        return result
      } catch  where error.mayBeOfSession {
        throw .session(error)
      }
    }
  }

  // MARK: Search for the process

  /// Connects to the session bus that `environment` names, and looks for the service. Starts nothing.
  static func find(_ environment: [String: String], by deadline: Deadline) throws(ServiceFailure) -> Found {
    let bus = try BusConnection.to(BusAddress.find(in: environment), by: deadline)
    return (bus, try owner(on: bus, by: deadline))
  }

  /// Asks the bus for the process that has the service's name. Returns `nil` if there is none. Starts nothing.
  static func owner(on bus: BusConnection, by deadline: Deadline) throws(ServiceFailure) -> Owner? {
    let service = Variant.tuple([.string(SecretServiceProxy.wellKnownName)])
    var answers: [Result<Variant, ServiceFailure>] = [.failure(.malformed), .failure(.malformed)]
    // Sends both calls at once. The bus answers them in order.
    let calls = ["GetNameOwner", "GetConnectionUnixProcessID"].map { (BusConnection.busPath, $0, service) }
    try bus.call(BusConnection.busName, BusConnection.busName, each: calls, by: { deadline }) {
      answers[$0] = $1
    }
    do throws(ServiceFailure) {
      return (try answers[0].get().element(0, \.string), try kind(answers[1]))
    } catch .lost {
      if bus.isClosed { throw .busClosed }
      return nil
    }
  }

  private static func kind(_ answer: Result<Variant, ServiceFailure>) throws(ServiceFailure) -> ServiceKind {
    do throws(ServiceFailure) {
      return ServiceKind(process: try answer.get()[0]?.unsigned32)
    } catch  where error.isRemote {
      return .other  // the bus does not know the process
    }
  }

  private static func start(on bus: BusConnection, by deadline: Deadline) throws(ServiceFailure) -> Owner {
    do throws(ServiceFailure) {
      try bus.start(SecretServiceProxy.wellKnownName, by: deadline)
    } catch .timedOut {
      throw deadline.failure
    } catch {
      throw .error(
        .unavailable, "No Secret Service runs on the session bus, and the bus could not start one.",
        advice: "Start a Secret Service, or use a vault.")
    }
    if let owner = try owner(on: bus, by: deadline) { return owner }
    throw .lost("the Secret Service stopped while it started")
  }
}
#endif
