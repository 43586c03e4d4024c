#if Keyring
package import CofferCore

/// The state of the session bus and its Secret Service. The probe starts nothing, unlocks nothing and shows no prompt.
package struct KeyringStatus: Sendable {
  /// The D-Bus address of the session bus, or `nil` if none was found.
  package internal(set) var busAddress: String?
  package internal(set) var isBusReachable = false
  package internal(set) var isServiceRunning = false
  package internal(set) var isServiceActivatable = false
  /// The label of the collection that the probe was about, or `nil` if there is none or the service does not run.
  package internal(set) var collection: String?
  /// Whether this collection is locked, or `nil` if this is not known.
  package internal(set) var isLocked: Bool?
  /// Whether the service writes a change only after its answer, as KWallet does: if it is killed within some seconds,
  /// the change is lost.
  package internal(set) var isWrittenLater = false
  /// Whether ``KeyringOptions/init(environment:)`` allows prompts in this environment.
  package internal(set) var mayPrompt = false
  /// The error that ended the probe early, or `nil`.
  package internal(set) var problem: SecretError?
}

extension KeyringBackend {
  /// Returns the status of the session bus that `environment` names, of its Secret Service, and of the collection with
  /// the alias or label `collection`, or else of the default collection.
  ///
  /// Blocks for at most `timeout`. A failure is in ``KeyringStatus/problem``. Thread-safe.
  package static func probe(
    environment: [String: String], collection: String? = nil, timeout: Duration = .seconds(5)
  ) -> KeyringStatus {
    var status = KeyringStatus()
    status.mayPrompt = KeyringOptions(environment: environment).mayPrompt
    do throws(ServiceFailure) {
      let deadline = Deadline(after: timeout)
      let address = try BusAddress.find(in: environment)
      status.busAddress = address
      let bus = try BusConnection.to(address, by: deadline)
      status.isBusReachable = true
      let owner = try ServiceProcess.owner(on: bus, by: deadline)
      status.isServiceRunning = owner != nil
      status.isServiceActivatable = try bus.canStart(SecretServiceProxy.wellKnownName, by: deadline)
      guard let owner else { return status }
      status.isWrittenLater = owner.kind == .kWallet

      let service = SecretServiceProxy(bus: bus, timeout: try deadline.remaining(), deadline: deadline)
      guard let path = try service.collection(named: collection) else { return status }
      let properties = try service.properties(of: path, .collection)
      status.collection = properties["Label"]?.string
      status.isLocked = properties["Locked"]?.boolean
    } catch {
      status.problem = error.secretError
    }
    return status
  }
}
#endif
