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
  private nonisolated(unsafe) var current: SecretSession?  // accessed only with `lock` held

  /// Connects to the session bus that `environment` names, or uses `existing`, and starts the service if the bus can
  /// activate it. Takes at most `options.connectTimeout`.
  init(
    _ environment: [String: String], _ options: KeyringOptions, _ operation: OperationDeadline,
    on existing: BusConnection? = nil
  ) throws(ServiceFailure) {
    self.options = options
    let home = environment["HOME"] ?? ""
    dataDirectory = environment["XDG_DATA_HOME"].flatMap { $0.isEmpty ? nil : $0 } ?? home + "/.local/share"
    let deadline = Deadline(after: min(options.connectTimeout, try operation.remaining()))
    do throws(ServiceFailure) {
      if let existing, !existing.isClosed {
        bus = existing
      } else {
        bus = try BusConnection(address: BusAddress.find(in: environment), timeout: deadline.remaining)
      }
      owner = try Self.owner(on: bus, deadline)
      kind = try ServiceKind(ofProcessNamed: owner, on: bus, timeout: deadline.remaining)
    } catch .timedOut {
      throw .timedOut(options.connectTimeout)  // not what was left of it for the last step
    }
  }

  /// Returns the session, which the first call opens.
  func session(_ operation: OperationDeadline) throws(ServiceFailure) -> SecretSession {
    try lock.withLock(operation.remaining()) { () throws(ServiceFailure) in
      if let current { return current }
      let timeout = min(options.connectTimeout, try operation.remaining())
      do throws(ServiceFailure) {
        let session = try SecretSession(bus, owner: owner, timeout: timeout)
        current = session
        return session
      } catch  where error.mayBeOfSession {
        throw .session(error)
      }
    }
  }

  /// Which values `collection` returns as they were stored.
  func storageRule(of collection: String) -> StorageRule {
    StorageRule.rule(for: collection, of: kind, dataDirectory: dataDirectory)
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
        advice: "Start a Secret Service, or use a vault.")
    }
    guard let owner = try currentOwner() else { throw .lost("the Secret Service stopped while it started") }
    return owner
  }
}
#endif
