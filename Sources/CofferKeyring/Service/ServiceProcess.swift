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
  private let dataDirectory: String
  private let lock = DeadlineLock()
  private let negotiation: PreparedNegotiation
  // Accessed only with `lock` held.
  private nonisolated(unsafe) var current: SecretSession?
  private nonisolated(unsafe) var opening: OpeningSession?

  /// A connection, and the service that it has found.
  typealias Found = (bus: BusConnection, owner: ServiceOwner?)

  /// Connects to the session bus that `environment` names, or uses what was `found`, and starts the service if the bus can
  /// activate it. Takes at most `options.connectTimeout`.
  init(
    _ environment: [String: String], _ options: KeyringOptions, _ operation: OperationDeadline,
    _ negotiation: PreparedNegotiation, _ found: Found?
  ) throws(ServiceFailure) {
    self.options = options
    self.negotiation = negotiation
    let home = environment["HOME"] ?? ""
    dataDirectory = environment["XDG_DATA_HOME"].flatMap { $0.isEmpty ? nil : $0 } ?? home + "/.local/share"
    let deadline = Deadline(after: min(options.connectTimeout, try operation.remaining()))
    do throws(ServiceFailure) {
      let found =
        if let found, !found.bus.isClosed { found } else { try Self.find(environment, deadline) }
      let owner = if let owner = found.owner { owner } else { try Self.start(on: found.bus, deadline) }
      (bus, self.owner, kind) = (found.bus, owner.name, owner.kind)
    } catch .timedOut {
      throw .timedOut(options.connectTimeout)  // not what was left of it for the last step
    }
  }

  /// Whether there is a session, or it is being opened.
  var hasSession: Bool {
    do throws(SecretError) {
      return try lock.withLockIfFree { current != nil || opening != nil } ?? true
    } catch { return true }
  }

  /// Begins to open the session if there is none, so that this process and the service compute the session's key while
  /// something else goes on.
  func prepareSession() {
    do throws(SecretError) {
      try lock.withLockIfFree { if current == nil && opening == nil { opening = openSession() } }
    } catch {}  // the call for the session reports what fails
  }

  /// Waits until the service was asked for the session, for at most `timeout`. Returns at once if none is being opened.
  func waitForSessionRequest(within timeout: Duration) {
    do throws(SecretError) {
      let opening = try lock.withLockIfFree { self.opening } ?? nil
      opening?.waitForRequest(within: timeout)
    } catch {}  // the call for the session reports what fails
  }

  private func openSession() -> OpeningSession {
    OpeningSession(
      negotiation.take(),
      with: SecretServiceProxy(bus: bus, name: owner, timeout: options.connectTimeout))
  }

  /// Returns the path by which messages name the session. The service tells it before this process has computed the key.
  func sessionPath(_ operation: OperationDeadline) throws(ServiceFailure) -> String {
    try lock.withLock(operation.remaining()) { () throws(ServiceFailure) in
      if let current { return current.path }
      let timeout = min(options.connectTimeout, try operation.remaining())
      let deadline = Deadline(after: timeout)
      let opening = opening ?? openSession()
      self.opening = opening
      if let path = opening.path(within: timeout) { return path }
      do throws(ServiceFailure) {
        return try openedSession(within: deadline.remaining).path
      } catch .timedOut {
        throw .timedOut(timeout)  // not what was left of it
      }
    }
  }

  /// Returns the session, which the first call opens.
  func session(_ operation: OperationDeadline) throws(ServiceFailure) -> SecretSession {
    try lock.withLock(operation.remaining()) { () throws(ServiceFailure) in
      if let current { return current }
      return try openedSession(within: min(options.connectTimeout, operation.remaining()))
    }
  }

  /// To be called with `lock` held.
  private func openedSession(within timeout: Duration) throws(ServiceFailure) -> SecretSession {
    let opening = opening ?? openSession()
    self.opening = nil
    do throws(ServiceFailure) {
      let session = try opening.result(within: timeout)
      current = session
      return session
    } catch  where error.mayBeOfSession {
      throw .session(error)
    }
  }

  /// Which values `collection` returns as they were stored.
  func storageRule(of collection: String) -> StorageRule {
    StorageRule.rule(for: collection, of: kind, dataDirectory: dataDirectory)
  }

  /// Connects to the session bus that `environment` names, and looks for the service. Starts nothing.
  static func find(_ environment: [String: String], _ deadline: Deadline) throws(ServiceFailure) -> Found {
    let bus = try BusConnection(address: BusAddress.find(in: environment), timeout: deadline.remaining)
    return (bus, try ServiceOwner.current(on: bus, timeout: deadline.remaining))
  }

  private static func start(
    on bus: BusConnection, _ deadline: Deadline
  ) throws(ServiceFailure) -> ServiceOwner {
    let arguments: [Variant] = [.string(SecretServiceProxy.wellKnownName), .unsigned32(0)]
    do throws(ServiceFailure) {
      _ = try bus.callBus("StartServiceByName", arguments, timeout: deadline.remaining)
    } catch .timedOut(let timeout) {
      throw .timedOut(timeout)
    } catch {
      throw .error(
        .unavailable, "No Secret Service runs on the session bus, and the bus could not start one.",
        advice: "Start a Secret Service, or use a vault.")
    }
    guard let owner = try ServiceOwner.current(on: bus, timeout: deadline.remaining) else {
      throw .lost("the Secret Service stopped while it started")
    }
    return owner
  }
}
#endif
