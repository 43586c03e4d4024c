#if Keyring
internal import CofferCore
internal import Synchronization

/// Provides the connection to the service. The first call connects; a call after the bus or the service went away
/// connects again.
final class SecretServiceConnection: Sendable {
  private let environment: [String: String]
  private let options: KeyringOptions
  private let lock = DeadlineLock()
  // Accessed only with `lock` held.
  private nonisolated(unsafe) var current: ServiceProcess?
  /// The deadline of successive operations, and the end of the last one. `nil` if each has its own deadline.
  private let shared = Mutex<(deadline: Deadline, ended: ContinuousClock.Instant)?>(nil)
  /// The connection that ``isAvailable()`` has made, for the first call.
  private nonisolated(unsafe) var unused: ServiceProcess.Found?
  private let expectsSession = Atomic(false)

  init(environment: [String: String], options: KeyringOptions) {
    (self.environment, self.options) = (environment, options)
  }

  /// Gives successive operations one deadline: `options.timeout`, and half a second more for each. The time
  /// between them does not count. A new deadline begins after five seconds without an operation.
  func shareDeadline() { shared.withLock { $0 = (Deadline(after: options.timeout), .now) } }

  /// Makes libsecret begin a session while the connection is made. For calls that will read a value.
  func expectSession() { expectsSession.store(true, ordering: .relaxed) }

  private func deadline() -> Deadline {
    shared.withLock { shared in
      guard let (deadline, ended) = shared, .now - ended < .seconds(5) else {
        let deadline = Deadline(after: options.timeout)
        shared?.deadline = deadline
        return deadline
      }
      deadline.leaveOut(since: ended)
      deadline.extend(by: .milliseconds(500))
      return deadline
    }
  }

  /// Whether a service runs, or the bus can start one. Starts nothing, and keeps the connection for the first call.
  func isAvailable() throws(SecretError) -> Bool {
    let deadline = Deadline(after: options.connectTimeout)
    do throws(ServiceFailure) {
      return try lock.withLock(options.connectTimeout) { () throws(ServiceFailure) in
        let found = try ServiceProcess.find(environment, by: deadline)
        unused = found
        if found.owner != nil { return true }
        return try found.bus.canStart(SecretServiceProxy.wellKnownName, by: deadline)
      }
    } catch {
      throw error.secretError
    }
  }

  /// Runs `body` with the service. If the service goes away, or if a session with it does not work, `body` runs a
  /// second time: it must begin with a search, and must not repeat a change that cannot be repeated. Both runs share
  /// `options.timeout`.
  func withService<R: ~Copyable>(
    _ body: (ServiceProcess, Deadline) throws(ServiceFailure) -> R
  ) throws(SecretError) -> R {
    let deadline = deadline()
    defer { shared.withLock { $0?.ended = .now } }
    func attempt() throws(ServiceFailure) -> R {
      let process = try process(by: deadline)
      do throws(ServiceFailure) {
        return try body(process, deadline)
      } catch  where error.mayPassWithNewConnection {
        try lock.withLock(deadline.remaining()) { if current === process { current = nil } }
        throw error
      }
    }
    do throws(ServiceFailure) {
      do throws(ServiceFailure) { return try attempt() } catch  where error.mayPassWithNewConnection {}
      return try attempt()
    } catch {
      throw error.secretError
    }
  }

  private func process(by deadline: Deadline) throws(ServiceFailure) -> ServiceProcess {
    try lock.withLock(deadline.remaining()) { () throws(ServiceFailure) in
      if let current, !current.bus.isClosed { return current }
      current = nil
      defer { unused = nil }
      let session = expectsSession.load(ordering: .relaxed) ? SessionNegotiation() : nil
      let process = try ServiceProcess(environment, options, unused, session, by: deadline)
      current = process
      return process
    }
  }
}
#endif
