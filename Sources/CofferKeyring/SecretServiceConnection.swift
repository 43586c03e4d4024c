#if Keyring
internal import CofferCore

/// The way to the service: made at the first call, and made anew when the bus or the service went away.
final class SecretServiceConnection: Sendable {
  private let environment: [String: String]
  private let connectDeadline: Double
  private let callDeadline: Double
  private let lock = DeadlineLock()
  private nonisolated(unsafe) var current: SecretServiceProxy?  // only under the lock

  init(environment: [String: String], options: KeyringOptions) {
    self.environment = environment
    connectDeadline = options.connectDeadline
    callDeadline = options.callDeadline
  }

  /// Runs `body` with the service. Where the service turns out to be gone, `body` runs a second time with
  /// the one that took its place: it must begin with a search, and not repeat what cannot be.
  func withService<R: ~Copyable>(
    _ body: (SecretServiceProxy) throws(ServiceFailure) -> R
  ) throws(SecretError) -> R {
    do throws(ServiceFailure) {
      return try attempt(body)
    } catch .lost {
      do throws(ServiceFailure) { return try attempt(body) } catch { throw error.secretError }
    } catch {
      throw error.secretError
    }
  }

  private func attempt<R: ~Copyable>(
    _ body: (SecretServiceProxy) throws(ServiceFailure) -> R
  ) throws(ServiceFailure) -> R {
    let service = try self.service()
    do throws(ServiceFailure) {
      return try body(service)
    } catch .lost(let reason) {
      try locked { if current === service { current = nil } }
      throw .lost(reason)
    }
  }

  private func service() throws(ServiceFailure) -> SecretServiceProxy {
    try locked { () throws(ServiceFailure) in
      if let current, !current.bus.isClosed { return current }
      current = nil
      let service = try connect()
      current = service
      return service
    }
  }

  private func connect() throws(ServiceFailure) -> SecretServiceProxy {
    let deadline = Deadline(seconds: connectDeadline)
    let address: String
    do throws(SecretError) { address = try BusAddress.find(in: environment) } catch { throw .secret(error) }
    do throws(ServiceFailure) {
      let bus = try BusConnection(address: address, seconds: deadline.remaining)
      let owner = try Self.owner(on: bus, deadline)
      let session = try SecretSession(bus, owner: owner, seconds: deadline.remaining)
      return SecretServiceProxy(bus, owner: owner, session: session, callDeadline: callDeadline)
    } catch .timedOut {
      // The steps had only the rest of it each.
      throw .timedOut(connectDeadline)
    }
  }

  /// The unique name of the service, which is started where the bus knows how to.
  private static func owner(on bus: BusConnection, _ deadline: Deadline) throws(ServiceFailure) -> String {
    let name = Variant.string(SecretServiceProxy.name)
    func currentOwner() throws(ServiceFailure) -> String? {
      do throws(ServiceFailure) {
        return try bus.callBus("GetNameOwner", [name], seconds: deadline.remaining)[0]?.string
      } catch .lost {
        if bus.isClosed { throw .lost("the connection to the session bus was closed") }
        return nil
      }
    }
    if let owner = try currentOwner() { return owner }
    do throws(ServiceFailure) {
      _ = try bus.callBus("StartServiceByName", [name, .unsigned32(0)], seconds: deadline.remaining)
    } catch .timedOut(let seconds) {
      throw .timedOut(seconds)
    } catch {
      throw .secret(
        SecretError(
          .unavailable,
          "No Secret Service is running on the session bus, and none could be started.",
          advice: "Install and start gnome-keyring, or use a vault: run secret init."
        )
      )
    }
    guard let owner = try currentOwner() else { throw .lost("the Secret Service stopped as it started") }
    return owner
  }

  private func locked<R>(_ body: () throws(ServiceFailure) -> R) throws(ServiceFailure) -> R {
    var result: Result<R, ServiceFailure>?
    do throws(SecretError) {
      // Another thread may be connecting, twice in a row.
      try lock.withLock(seconds: 2 * connectDeadline + 1) { () throws(SecretError) in
        do throws(ServiceFailure) { result = .success(try body()) } catch { result = .failure(error) }
      }
    } catch {
      throw .secret(error)
    }
    guard let result else { throw .failed("a lock did not run its body") }
    return try result.get()
  }
}

/// A point in time that several steps share.
struct Deadline {
  private let end: ContinuousClock.Instant
  init(seconds: Double) { end = .now + .seconds(seconds) }

  /// Seconds until then: not less than a millisecond, so that a call that is late fails as one.
  var remaining: Double { max(0.001, (end - .now) / .seconds(1)) }
}
#endif
