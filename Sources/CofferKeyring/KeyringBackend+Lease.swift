#if Keyring
public import CofferCore

extension KeyringBackend {
  /// Takes the lease of a secret. Returns `nil` if another thread or process has it.
  ///
  /// The lease is a name on the session bus, `coffer.lease.h` and a hash of service and account, which one connection at a
  /// time can own. It therefore holds between all programs that reach the same keyring, and ends with the process. It
  /// holds no longer than the bus runs, like the keyring itself. Throws `.denied` if the bus does not permit names, as in
  /// some sandboxes, and the errors of the service.
  public func tryLease(_ identifier: SecretIdentifier) throws(SecretError) -> SecretLease? {
    let name = "coffer.lease.h" + identifier.hashText
    let timeout = options.callTimeout
    return try search(for: identifier) { search throws(ServiceFailure) -> SecretLease? in
      let bus = search.process.bus
      // If an earlier request made this connection the owner, another thread of this process has the lease.
      guard try bus.requestName(name, by: search.service.next()) == .thisRequest else { return nil }
      return SecretLease { bus.releaseName(name, by: Deadline(after: timeout)) }
    }
  }
}
#endif
