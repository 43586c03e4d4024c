#if Keyring
import CofferCore
import CofferKeyring
import CofferTestSupport
import Testing

/// Leases of secrets in the keyring. Each backend object has its own connection to the bus, as a process has.
@Suite(.needsKeyring) struct LeaseTests {
  private let keyring: PrivateKeyring
  private let a: SecretIdentifier
  private let b: SecretIdentifier

  init() async throws {
    keyring = try await PrivateKeyring(.encrypted)
    a = try SecretIdentifier(service: "svc", account: "a")
    b = try SecretIdentifier(service: "svc", account: "b")
  }

  @Test func aLeaseHoldsBetweenObjectsAndOnlyForItsSecret() throws {
    let (one, two) = (keyring.backend(), keyring.backend())
    let lease = try #require(try one.tryLease(a))
    #expect(try one.tryLease(a) == nil, "another thread of the process")
    #expect(try two.tryLease(a) == nil)
    #expect(try two.tryLease(b) != nil)
    // It does not keep anybody from the secret.
    try two.store("stored", a)
    #expect(try one.text(a) == "stored")
    lease.release()
    #expect(try two.tryLease(a) != nil)
  }

  @Test func aLeaseOutlivesTheServiceAndEndsWithItsConnection() async throws {
    let two = keyring.backend()
    var one: KeyringBackend? = keyring.backend()
    var lease = try one?.tryLease(a)
    #expect(lease != nil)
    try await keyring.restartDaemon()
    #expect(try two.tryLease(a) == nil)
    (one, lease) = (nil, nil)
    #expect(try two.tryLease(a) != nil)
  }

  @Test func withoutABusALeaseIsAnError() {
    let backend = KeyringBackend(environment: ["DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent"])
    #expect(thrown { () throws(SecretError) in _ = try backend.tryLease(a) }?.code == .unavailable)
  }
}
#endif
