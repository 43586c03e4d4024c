#if Keyring
internal import CofferCore

/// Provides the session with the service. The first call connects; a call after the bus or the service went
/// away connects again.
final class SecretServiceConnection: Sendable {
  private let environment: [String: String]
  private let options: KeyringOptions
  private let lock = DeadlineLock()
  private nonisolated(unsafe) var current: SecretSession?  // accessed only with `lock` held

  init(environment: [String: String], options: KeyringOptions) {
    self.environment = environment
    self.options = options
  }

  /// Runs `body` with a session. If the service goes away, `body` runs a second time with a new session: it
  /// must begin with a search, and must not repeat a change that cannot be repeated.
  func withSession<R: ~Copyable>(
    _ body: (SecretSession) throws(ServiceFailure) -> R
  ) throws(SecretError) -> R {
    do throws(ServiceFailure) {
      do throws(ServiceFailure) { return try attempt(body) } catch .lost { return try attempt(body) }
    } catch {
      throw error.secretError
    }
  }

  private func attempt<R: ~Copyable>(
    _ body: (SecretSession) throws(ServiceFailure) -> R
  ) throws(ServiceFailure) -> R {
    let session = try session()
    do throws(ServiceFailure) {
      return try body(session)
    } catch .lost(let reason) {
      try locked { if current === session { current = nil } }
      throw .lost(reason)
    }
  }

  private func session() throws(ServiceFailure) -> SecretSession {
    try locked { () throws(ServiceFailure) in
      if let current, !current.service.bus.isClosed { return current }
      current = nil
      let session = try connect()
      current = session
      return session
    }
  }

  private func connect() throws(ServiceFailure) -> SecretSession {
    let deadline = Deadline(after: options.connectTimeout)
    let address = try BusAddress.find(in: environment)
    do throws(ServiceFailure) {
      let bus = try BusConnection(address: address, timeout: deadline.remaining)
      let owner = try Self.owner(on: bus, deadline)
      let service = SecretServiceProxy(bus: bus, name: owner, timeout: options.callTimeout)
      return try SecretSession(service, timeout: deadline.remaining)
    } catch .timedOut {
      throw .timedOut(options.connectTimeout)  // not what was left of it for the last step
    }
  }

  /// Returns the unique name of the service. Starts the service if the bus can activate it.
  private static func owner(on bus: BusConnection, _ deadline: Deadline) throws(ServiceFailure) -> String {
    let name = Variant.string(SecretServiceProxy.wellKnownName)
    func currentOwner() throws(ServiceFailure) -> String? {
      do throws(ServiceFailure) {
        return try bus.callBus("GetNameOwner", [name], timeout: deadline.remaining)[0]?.string
      } catch .lost {
        if bus.isClosed { throw .busClosed }
        return nil
      }
    }
    if let owner = try currentOwner() { return owner }
    do throws(ServiceFailure) {
      _ = try bus.callBus("StartServiceByName", [name, .unsigned32(0)], timeout: deadline.remaining)
    } catch .timedOut(let timeout) {
      throw .timedOut(timeout)
    } catch {
      throw .error(
        .unavailable, "No Secret Service runs on the session bus, and the bus could not start one.",
        advice: "Install and start gnome-keyring, or use a vault.")
    }
    guard let owner = try currentOwner() else { throw .lost("the Secret Service stopped while it started") }
    return owner
  }

  private func locked<R>(_ body: () throws(ServiceFailure) -> R) throws(ServiceFailure) -> R {
    // Two other threads may connect first, each for the whole timeout.
    try lock.withLock(options.connectTimeout * 2 + .seconds(1), body)
  }
}
#endif
