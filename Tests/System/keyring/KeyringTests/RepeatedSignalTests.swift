#if Keyring
import CofferCore
import CofferKeyring
import CofferTestSupport
import Testing

/// A service that sends a signal for one change many times.
@Suite(.needsKeyring) struct RepeatedSignalTests {
  @Test func manySignalsWithinAShortTimeAreFewChanges() async throws {
    let identifier = try SecretIdentifier(service: "svc", account: "alice")
    let keyring = try await PrivateKeyring(storingWith: "repeats-signals")
    let backend = keyring.backend()
    let last = try SecretIdentifier(service: "svc", account: "last")
    let changes = ChangeCollector(backend.changes())
    try backend.store("value", identifier)
    var count = 0
    try await eventually("the last signal was not reported") {
      let reported = changes.drain()
      count += reported.filter { $0 == SecretChange(identifier) }.count
      return reported.contains(SecretChange(last))
    }
    // The service sends 50 signals in 50 milliseconds or more.
    #expect((1...25).contains(count))
  }
}
#endif
