import CofferCore
import CofferTestSupport
import CofferVault
import Foundation
import Synchronization
import Testing

/// The clock sets only the times in metadata. It may have any value and may go back.
@Suite struct ClockTests {
  @Test func changesKeepTheirOrderWhateverTheClockSays() throws {
    let now = Mutex(0.0)
    var environment = VaultEnvironment(now: { Date(timeIntervalSince1970: now.withLock { $0 }) })
    environment.compactionThreshold = 1000
    let vault = try TestVault(environment: environment)
    let times = [
      1_700_000_000, 0, -1, 1_900_000_000, -62_135_596_800, 253_402_300_799, 1e15, -1e15, 1e300,
      1_700_000_000,
    ]
    for (number, time) in times.enumerated() {
      now.withLock { $0 = time }
      let backend = vault.open(environment: environment)
      for round in 0..<8 { try backend.set("a", [UInt8(number), UInt8(round)]) }
      #expect(try backend.get("a") == [UInt8(number), 7])
      #expect(try vault.open().get("a") == [UInt8(number), 7])
      let item = try #require(try backend.items(inService: nil).first)
      if abs(time) < 1e15 {
        #expect(item.metadata.modified == Date(timeIntervalSince1970: time))
        #expect(item.metadata.created == Date(timeIntervalSince1970: times[0]))
      }
      _ = try backend.verify()
    }
    try vault.open().compact()
    #expect(try vault.open().get("a") == [UInt8(times.count - 1), 7])
  }

  /// The wait for a lock is measured by the monotonic clock.
  @Test func aLeapOfTheMonotonicClockEndsTheWaitForALock() throws {
    let vault = try TestVault()
    let uptime = Mutex(Duration.zero)
    let environment = VaultEnvironment(
      uptime: { uptime.withLock { $0 } }, sleep: { _ in uptime.withLock { $0 += .seconds(86_400) } })
    let holder = vault.open()
    let waiter = vault.open(environment: environment)
    try holder.withTransaction { transaction throws(SecretError) in
      do throws(SecretError) {
        try waiter.store(SecretBytes([1]), for: SecretIdentifier(service: "s", account: "a"))
        Issue.record("two writers had the lock")
      } catch {
        #expect(error.code == .timedOut)
      }
    }
  }
}
