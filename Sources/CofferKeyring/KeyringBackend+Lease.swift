#if Keyring
public import CofferCore

extension KeyringBackend: LeasingSecretBackend {
  /// Takes the lease of a secret. Returns `nil` if another thread or process has it.
  ///
  /// The lease is a name on the session bus, `coffer.lease.h` and a hash of service and account, which one connection at a
  /// time can own. It therefore holds between all programs that reach the same keyring, and ends with the process. It
  /// holds no longer than the bus runs, like the keyring itself. Throws `.denied` if the bus does not permit names, as in
  /// some sandboxes.
  public func tryLease(_ identifier: SecretIdentifier) throws(SecretError) -> SecretLease? {
    let name = "coffer.lease.h" + identifier.hashText
    let timeout = options.callTimeout
    do throws(SecretError) {
      return try connection.withService { process, deadline throws(ServiceFailure) -> SecretLease? in
        let bus = process.bus
        let answer = try bus.callBus(
          "RequestName", [.string(name), .unsigned32(Self.doNotQueue)],
          timeout: min(timeout, try deadline.remaining()))
        // If this connection owns the name already, another thread of this process has the lease.
        guard answer[0]?.unsigned32 == Self.primaryOwner else { return nil }
        return SecretLease {
          do throws(ServiceFailure) {
            _ = try bus.callBus("ReleaseName", [.string(name)], timeout: timeout)
          } catch {
            // The bus has ended, and its names with it.
          }
        }
      }
    } catch {
      throw error.about(identifier)
    }
  }

  // Source: D-Bus Specification 0.43, org.freedesktop.DBus.RequestName.
  private static var doNotQueue: UInt32 { 4 }
  private static var primaryOwner: UInt32 { 1 }
}
#endif
