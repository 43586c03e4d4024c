#if Keyring
public import CofferCore

/// What there is of a keyring, found without starting, unlocking or asking anything.
public struct KeyringStatus: Sendable {
  /// The D-Bus address of the session bus, or `nil` where none was found.
  public internal(set) var busAddress: String?
  /// Whether the bus answered.
  public internal(set) var isBusReachable = false
  /// Whether a Secret Service runs on it.
  public internal(set) var isServiceRunning = false
  /// Whether the bus knows how to start one.
  public internal(set) var isServiceActivatable = false
  /// The label of the default collection. `nil`: there is none yet, or the service does not run.
  public internal(set) var defaultCollection: String?
  /// Whether the default collection is locked. `nil` where it is not known.
  public internal(set) var isLocked: Bool?
  /// Whether the service may show a prompt.
  public internal(set) var mayPrompt = false
  /// What kept the rest from being found out.
  public internal(set) var problem: SecretError?

  /// Whether a ``KeyringBackend`` has a service to talk to.
  public var isAvailable: Bool { isServiceRunning || isServiceActivatable }
}

extension KeyringBackend {
  /// Whether a Secret Service runs on the session bus or can be started there. Waits for at most the
  /// default deadline for connecting.
  public static func isAvailable(environment: [String: String]) -> Bool {
    probe(environment: environment).isAvailable
  }

  /// Looks what there is. Takes at most `seconds`, and throws nothing: see ``KeyringStatus/problem``.
  public static func probe(environment: [String: String], seconds: Double = 5) -> KeyringStatus {
    var status = KeyringStatus()
    status.mayPrompt = KeyringOptions(environment: environment).mayPrompt
    do throws(ServiceFailure) {
      try probe(environment, Deadline(seconds: seconds), &status)
    } catch {
      status.problem = error.secretError
    }
    return status
  }

  private static func probe(
    _ environment: [String: String],
    _ deadline: Deadline,
    _ status: inout KeyringStatus
  ) throws(ServiceFailure) {
    let address: String
    do throws(SecretError) { address = try BusAddress.find(in: environment) } catch { throw .secret(error) }
    status.busAddress = address
    let bus = try BusConnection(address: address, seconds: deadline.remaining)
    status.isBusReachable = true
    let names = try bus.callBus("ListNames", seconds: deadline.remaining)[0]?.strings ?? []
    status.isServiceRunning = names.contains(SecretServiceProxy.name)
    let activatable = try bus.callBus("ListActivatableNames", seconds: deadline.remaining)[0]?.strings ?? []
    status.isServiceActivatable = activatable.contains(SecretServiceProxy.name)
    guard status.isServiceRunning else { return }

    func ask(_ path: String, _ interface: String, _ method: String, _ arguments: [Variant])
      throws(ServiceFailure)
      -> Variant?
    {
      try bus.call(
        SecretServiceProxy.name, path: path, interface, method, arguments, seconds: deadline.remaining)[0]
    }
    let alias = try ask(
      SecretServiceProxy.path, SecretServiceProxy.Interface.service, "ReadAlias", [.string("default")])?
      .string
    guard let collection = alias, collection != SecretServiceProxy.none else { return }
    let properties = try ask(
      collection,
      SecretServiceProxy.Interface.properties,
      "GetAll",
      [.string(SecretServiceProxy.Interface.collection)]
    )?.properties
    status.defaultCollection = properties?["Label"]?.string
    status.isLocked = properties?["Locked"]?.boolean
  }
}
#endif
