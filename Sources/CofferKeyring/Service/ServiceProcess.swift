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
  // Accessed only with `lock` held.
  private nonisolated(unsafe) var session = Session.none

  private enum Session {
    case none
    case begun(SessionNegotiation)
    /// The service has told the path, and libsecret computes the key.
    case named(SessionNegotiation, path: String)
    case open(SecretSession)
  }

  /// A connection, and the service that it has found.
  typealias Found = (bus: BusConnection, owner: Owner?)

  /// The process that has the service's name on a bus.
  typealias Owner = (name: String, kind: ServiceKind)

  /// Connects to the session bus that `environment` names, or uses what was `found`, and starts the service if the bus can
  /// activate it. Takes at most `options.connectTimeout`. If `beginningSession`, libsecret begins a session at the same
  /// time.
  init(
    _ environment: [String: String], _ options: KeyringOptions, _ found: Found?, beginningSession: Bool,
    by deadline: Deadline
  ) throws(ServiceFailure) {
    if beginningSession { session = .begun(SessionNegotiation()) }
    self.options = options
    let home = environment["HOME"] ?? ""
    dataDirectory = environment["XDG_DATA_HOME"].flatMap { $0.isEmpty ? nil : $0 } ?? home + "/.local/share"
    let deadline = deadline.limited(to: options.connectTimeout)
    let found = if let found, !found.bus.isClosed { found } else { try Self.find(environment, by: deadline) }
    bus = found.bus
    (owner, kind) = if let owner = found.owner { owner } else { try Self.start(on: bus, by: deadline) }
  }

  /// Returns the path by which messages name the session, which the first call asks for. The service tells the path before
  /// this process has computed the key.
  func sessionPath(by deadline: Deadline) throws(ServiceFailure) -> String {
    try lock.withLock(deadline.remaining()) { () throws(ServiceFailure) in
      if case .open(let session) = session { return session.path }
      return try negotiated(by: deadline.limited(to: options.connectTimeout)).path
    }
  }

  /// Returns the session, which the first call opens.
  func session(by deadline: Deadline) throws(ServiceFailure) -> SecretSession {
    try lock.withLock(deadline.remaining()) { () throws(ServiceFailure) in
      if case .open(let session) = session { return session }
      let deadline = deadline.limited(to: options.connectTimeout)
      let (negotiation, _) = try negotiated(by: deadline)
      session = .none
      let opened = try Self.ofSession { () throws(ServiceFailure) in try negotiation.session(by: deadline) }
      session = .open(opened)
      return opened
    }
  }

  /// Asks for a session, unless one was asked for. To be called with `lock` held, and without an open session. A failure
  /// makes the next call ask for another session.
  private func negotiated(
    by deadline: Deadline
  ) throws(ServiceFailure) -> (SessionNegotiation, path: String) {
    if case .named(let negotiation, let path) = session { return (negotiation, path) }
    let negotiation = if case .begun(let begun) = session { begun } else { SessionNegotiation() }
    session = .none
    let service = SecretServiceProxy(
      bus: bus, name: owner, timeout: options.connectTimeout, deadline: deadline)
    let path = try Self.ofSession { () throws(ServiceFailure) in
      try negotiation.path(by: deadline, service.openSession)
    }
    session = .named(negotiation, path: path)
    return (negotiation, path)
  }

  private static func ofSession<R>(_ body: () throws(ServiceFailure) -> R) throws(ServiceFailure) -> R {
    do throws(ServiceFailure) { return try body() } catch  where error.mayBeOfSession {
      throw .session(error)
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
    // Both questions at once. The bus answers them in order.
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
      return .other  // the bus cannot tell
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
    guard let owner = try owner(on: bus, by: deadline) else {
      throw .lost("the Secret Service stopped while it started")
    }
    return owner
  }
}
#endif
