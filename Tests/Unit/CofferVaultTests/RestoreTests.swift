import CofferCore
import CofferTestSupport
import CofferVault
import Testing

/// Several secrets restored or erased in one step, while other processes use the vault.
@Suite struct RestoreTests {
  private let vault: TestVault

  init() throws {
    vault = try TestVault()
    for name in ["a", "b"] {
      for value in 1...2 as ClosedRange<UInt8> { try vault.open().set(name, [value]) }
    }
  }

  private var both: [SecretIdentifier] {
    get throws { [try identifier("a"), try identifier("b")] }
  }

  /// Restores in one transaction the versions that `choose` names. Returns the secrets that were restored.
  private func restore(
    _ identifiers: [SecretIdentifier],
    _ choose: (SecretIdentifier, [SecretVersion]) throws(SecretError) -> Int?
  ) throws(SecretError) -> [SecretIdentifier] {
    try vault.open().withTransaction { transaction throws(SecretError) in
      var restored: [SecretIdentifier] = []
      for identifier in identifiers {
        guard let number = try choose(identifier, transaction.versions(of: identifier)) else { continue }
        if try transaction.restore(identifier, version: number) != nil { restored.append(identifier) }
      }
      return restored
    }
  }

  @Test func noProcessErasesAVersionBetweenItsChoiceAndItsRestoration() throws {
    let other = vault.open(options: .impatient(.seconds(0.1)))
    var refusals: [SecretError.Code?] = []
    let restored = try restore(both) { identifier, versions throws(SecretError) in
      refusals.append(
        thrown { () throws(SecretError) in _ = try other.erase(identifier) }?.code)
      return versions.last?.number
    }
    #expect(!refusals.isEmpty && refusals.allSatisfy { $0 == .timedOut })
    #expect(try restored == both)
    #expect(try vault.open().get("a") == [1] && vault.open().get("b") == [1])
  }

  @Test func allSecretsAreRestoredInOneChange() throws {
    let before = try vault.open().verify().sequence
    #expect(try restore(both) { _, versions in versions.last?.number }.count == 2)
    #expect(try vault.open().verify().sequence == before + 2)
    // The current version and an unknown number change nothing.
    let after = try vault.open().verify().pin
    #expect(try restore(both) { _, versions in versions.first?.number }.isEmpty)
    #expect(try restore(both) { _, _ in 999 }.isEmpty)
    #expect(try restore(both) { _, _ in nil }.isEmpty)
    #expect(try vault.open().verify().pin == after)
  }

  @Test func aChoiceThatThrowsChangesNothing() throws {
    let before = try vault.open().verify().pin
    let names = try both
    let failure = thrown { () throws(SecretError) in
      _ = try restore(names) { identifier, versions throws(SecretError) in
        if identifier == names.last { throw SecretError(.conflict, "No.") }
        return versions.last?.number
      }
    }
    #expect(failure?.code == .conflict)
    #expect(try vault.open().verify().pin == before)
  }

  @Test func severalSecretsAreErasedInOneChange() throws {
    let names = try both
    try vault.open().withTransaction { transaction in
      for name in names {
        let isErased = try transaction.erase(name)
        #expect(isErased)
      }
    }
    let report = try vault.open().verify()
    #expect(report.secretCount == 0 && report.earlierVersionCount == 0)
  }

  @Test func aVersionBeyondTheLimitCanStillBeErased() throws {
    let vault = try TestVault()
    try vault.open().setHistoryLimit(.none)
    try vault.open().set("a", [1])
    try vault.open().remove(identifier("a"))
    #expect(try vault.open().versions(of: identifier("a")).isEmpty)
    #expect(try vault.open().erase(identifier("a")))
    #expect(try !vault.open().erase(identifier("a")))
  }
}
