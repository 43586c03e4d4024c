#if Keyring
/// The process that has the service's name on a bus.
struct ServiceOwner {
  /// Its unique bus name.
  let name: String
  let kind: ServiceKind

  /// Asks the bus for the owner, or returns `nil` if there is none. Starts nothing.
  static func current(on bus: BusConnection, timeout: Duration) throws(ServiceFailure) -> ServiceOwner? {
    let service = Variant.tuple([.string(SecretServiceProxy.wellKnownName)])
    var answers: [Result<Variant, ServiceFailure>] = [.failure(.malformed), .failure(.malformed)]
    // Both questions at once. The bus answers them in order.
    try ConcurrentCalls(bus, BusConnection.busName, BusConnection.busName).run(
      ["GetNameOwner", "GetConnectionUnixProcessID"].map { (BusConnection.busPath, $0, service) },
      { () in (timeout, timeout) }
    ) { index, answer in answers[index] = answer }
    do throws(ServiceFailure) {
      guard let name = try answers[0].get()[0]?.string else { throw .malformed }
      return ServiceOwner(name: name, kind: try kind(answers[1]))
    } catch .lost {
      if bus.isClosed { throw .busClosed }
      return nil
    }
  }

  private static func kind(_ answer: Result<Variant, ServiceFailure>) throws(ServiceFailure) -> ServiceKind {
    do throws(ServiceFailure) {
      return ServiceKind(process: try answer.get()[0]?.unsigned32)
    } catch  where error.isRemote {
      return .other  // the bus cannot tell
    }
  }
}
#endif
