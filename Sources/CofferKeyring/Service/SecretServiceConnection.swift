#if Keyring
internal import CofferCore

/// Provides the connection to the service. The first call connects; a call after the bus or the service went away
/// connects again.
final class SecretServiceConnection: Sendable {
  private let environment: [String: String]
  private let options: KeyringOptions
  private let lock = DeadlineLock()
  private let negotiation = PreparedNegotiation()
  // Accessed only with `lock` held.
  private nonisolated(unsafe) var current: ServiceProcess?
  /// What ``isAvailable()`` has found, for the first call.
  private nonisolated(unsafe) var unused: ServiceProcess.Found?
  /// What failed in ``prepare()``, and when.
  private nonisolated(unsafe) var failure: (error: ServiceFailure, end: ContinuousClock.Instant)?

  init(environment: [String: String], options: KeyringOptions) {
    self.environment = environment
    self.options = options
  }

  /// Whether a service runs, or the bus can start one. Starts nothing, and keeps the connection for the first call.
  func isAvailable() throws(SecretError) -> Bool {
    let deadline = Deadline(after: options.connectTimeout)
    do throws(ServiceFailure) {
      return try lock.withLock(options.connectTimeout) { () throws(ServiceFailure) in
        let found = try ServiceProcess.find(environment, deadline)
        unused = found
        if found.owner != nil { return true }
        let names = try found.bus.callBus("ListActivatableNames", timeout: deadline.remaining)
        return names[0]?.strings?.contains(SecretServiceProxy.wellKnownName) ?? false
      }
    } catch .timedOut {
      // Not what was left of it for the last step.
      throw ServiceFailure.timedOut(options.connectTimeout).secretError
    } catch {
      throw error.secretError
    }
  }

  /// Connects, if there is no connection, for the next call. A call that waits meanwhile gets the failure, if there is one:
  /// it must not wait for the same once more. A later call tries again.
  func prepare() {
    let deadline = OperationDeadline(after: options.operationTimeout)
    do throws(SecretError) {
      try lock.withLock(timeout: options.connectTimeout) {
        if current != nil { return }
        do throws(ServiceFailure) {
          let process = try connected(deadline)
          if negotiation.isPrepared { process.prepareSession() }
          current = process
        } catch {
          failure = (error, .now)
        }
      }
    } catch {}  // another thread connects
  }

  /// Begins a session for the next call, unless there is one: libsecret makes its key pair while something else goes on.
  func prepareSession() {
    do throws(SecretError) {
      // Another thread that connects meanwhile begins its own, if one is needed.
      let hasSession = try lock.withLockIfFree { current?.hasSession ?? false }
      if hasSession == false { negotiation.prepare() }
    } catch {}  // the calls of this thread report what fails
  }

  /// Waits until the service was asked for the session, for at most `timeout`. Returns at once if none is being opened.
  func waitForSessionRequest(within timeout: Duration) {
    do throws(SecretError) {
      let process = try lock.withLockIfFree { current } ?? nil
      process?.waitForSessionRequest(within: timeout)
    } catch {}  // the call for the session reports what fails
  }

  /// Runs `body` with the service. If the service goes away, or if a session with it does not work, `body` runs a
  /// second time: it must begin with a search, and must not repeat a change that cannot be repeated. Both runs have
  /// `options.operationTimeout` together.
  func withService<R: ~Copyable>(
    _ body: (ServiceProcess, OperationDeadline) throws(ServiceFailure) -> R
  ) throws(SecretError) -> R {
    let deadline = OperationDeadline(after: options.operationTimeout)
    do throws(ServiceFailure) {
      do throws(ServiceFailure) {
        return try attempt(deadline, body)
      } catch  where error.mayPassWithNewConnection {
        return try attempt(deadline, body)
      }
    } catch {
      throw error.secretError
    }
  }

  private func attempt<R: ~Copyable>(
    _ deadline: OperationDeadline,
    _ body: (ServiceProcess, OperationDeadline) throws(ServiceFailure) -> R
  ) throws(ServiceFailure) -> R {
    let process = try process(deadline)
    do throws(ServiceFailure) {
      return try body(process, deadline)
    } catch  where error.mayPassWithNewConnection {
      try lock.withLock(deadline.remaining()) { if current === process { current = nil } }
      throw error
    }
  }

  private func process(_ deadline: OperationDeadline) throws(ServiceFailure) -> ServiceProcess {
    try lock.withLock(deadline.remaining()) { () throws(ServiceFailure) in
      if let current, !current.bus.isClosed { return current }
      current = nil
      if let (error, end) = failure {
        failure = nil
        if deadline.start < end { throw error }
      }
      let process = try connected(deadline)
      current = process
      return process
    }
  }

  /// To be called with `lock` held.
  private func connected(_ deadline: OperationDeadline) throws(ServiceFailure) -> ServiceProcess {
    defer { unused = nil }
    return try ServiceProcess(environment, options, deadline, negotiation, unused)
  }
}

extension ServiceFailure {
  fileprivate var mayPassWithNewConnection: Bool {
    switch self {
    case .lost, .session: true
    default: false
    }
  }
}
#endif
