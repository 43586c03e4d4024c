import CofferCore
import CofferSimulation
import CofferTestSupport
import CofferVault
import FoundationEssentials
import Glibc
import Testing

/// A removed key and what its holder can do with an older copy, and the policy of vaults in version control.
@Suite struct RevokedKeyTests: KnownVaultSuite {
  let vault: TestVault
  let states: TemporaryDirectory

  init() throws {
    vault = try TestVault()
    states = try TemporaryDirectory()
  }

  /// Removes the slot of the other key, and returns the file from before.
  private func revoke() throws -> [UInt8] {
    try fresh().set("a", [1])
    let slot = try fresh().addKeySlot(FixedCredential.otherKey.credential)
    let before = try vault.bytes
    try fresh().removeKeySlots(ids: [slot.id])
    return before
  }

  /// Changes the old copy with the removed key until it is longer than the current file, and puts it in place.
  private func attack(with old: [UInt8], rekeying: Bool = false) throws {
    let attacker = try TestVault()
    try write(old, to: attacker.path)
    for _ in 0..<8 { try attacker.open(.otherKey).set("a", [66]) }
    if rekeying {
      let backend = attacker.open(.otherKey)
      try backend.rekey(opened: backend.openKeySlots(with: [FixedCredential.key]))
    }
    try restore(attacker.bytes)
  }

  @Test(arguments: [false, true]) func aRevokedKeyDoesNotComeBack(_ rekeying: Bool) throws {
    let running = fresh()
    try running.unlock()
    let old = try revoke()
    #expect(try running.get("a") == [1])
    let current = try vault.bytes
    try attack(with: old, rekeying: rekeying)
    #expect(code { _ = try fresh().get("a") } == .unexpectedKey)
    #expect(code { try fresh().set("b", [1]) } == .unexpectedKey)
    #expect(code { _ = try fresh().verify() } == .unexpectedKey)
    // A running process also refuses the file, with records or without.
    #expect(code { _ = try running.get("a") } == .unexpectedKey)
    try restore(current)
    #expect(try fresh().get("a") == [1])
    let withoutRecords = fresh(withRecords: false)
    try withoutRecords.unlock()
    try attack(with: old, rekeying: rekeying)
    #expect(code { _ = try withoutRecords.get("a") } == .unexpectedKey)
  }

  /// The lineage has room for 64 former master keys.
  @Test func aMachineThatMissedRekeysFollowsTheLineage() throws {
    try fresh().set("a", [1])
    for _ in 0..<2 { try fresh(withRecords: false).rekey() }
    #expect(try fresh().get("a") == [1])
    for _ in 0..<64 { try fresh(withRecords: false).rekey() }
    let last = try vault.bytes
    try fresh(withRecords: false).rekey()
    #expect(code { _ = try fresh().get("a") } == .unexpectedKey)
    try restore(last)
    #expect(try fresh().get("a") == [1])
  }

  @Test func theVersionedPolicyHoldsIdentityAndLineageAlone() throws {
    try fresh().set("a", [1])
    let old = try vault.bytes
    try fresh().trust(.versioned)
    #expect(try fresh().notices().contains(.versioned))
    try fresh().set("a", [2])
    try restore(old)
    #expect(try fresh().get("a") == [1])
    for value in 3...5 as ClosedRange<UInt8> { try fresh().set("a", [value]) }
    #expect(try fresh().notices().contains(.versioned))
    try restore(old)
    #expect(try fresh().get("a") == [1])
    // A removed key and another vault are still refused.
    let before = try revoke()
    let current = try vault.bytes
    try attack(with: before)
    #expect(code { _ = try fresh().get("a") } == .unexpectedKey)
    try restore(TestVault().bytes)
    #expect(code { _ = try fresh().get("a") } == .unexpectedVault)
    try restore(current)
    #expect(try fresh().get("a") == [1])
    // Once the policy is strict, an older state is refused again.
    try fresh().trust(.strict)
    let strict = try vault.bytes
    try fresh().set("a", [2])
    try restore(strict)
    #expect(code { _ = try fresh().get("a") } == .rolledBack)
  }

  @Test func aStrictPlaceStaysStrictBesideAVersionedOne() throws {
    try fresh().set("a", [1])
    let link = vault.directory.file("link")
    #expect(symlink("test.vault", link) == 0)
    try fresh(at: link).unlock()
    try fresh().trust(.versioned)
    let old = try vault.bytes
    try fresh(at: link).set("a", [2])
    try restore(old)
    #expect(code { _ = try fresh(at: link).get("a") } == .rolledBack)
    #expect(try fresh().get("a") == [1])
  }
}
