import CofferCore
import CofferSimulation
import CofferTestSupport
import CofferVault
import CofferVaultFormat
import Testing

/// A pin names a vault, its master key and a state that the vault must have reached, before anything of it is used.
@Suite struct PinTests: KnownVaultSuite {
  let vault: TestVault
  let states: TemporaryDirectory

  init() throws {
    vault = try TestVault()
    states = try TemporaryDirectory()
    try vault.open().set("a", [1])
  }

  private func options(_ pins: [String]) -> VaultOptions {
    var options = VaultOptions.cheap
    options.pins = pins
    return options
  }

  /// Opens the vault under pins, like a new process without records.
  private func pinned(_ pins: String...) -> VaultBackend { vault.open(options: options(pins)) }

  private func pin() throws -> String { try vault.open().verify().pin }

  /// The pin with changed fields and a matching checksum.
  private func altered(_ pin: String, _ change: (inout PinFields) -> Void) throws -> String {
    var fields = try PinFields(pin)
    change(&fields)
    return fields.text
  }

  private static func invert(_ bytes: inout [UInt8]) { bytes[bytes.count - 1] ^= 1 }

  /// Expects that every use of the vault under `pins` throws this error and changes nothing.
  private func expect(_ refusal: SecretError.Code, under pins: [String]) throws {
    let before = try vault.bytes
    let backend = vault.open(options: options(pins))
    #expect(code { _ = try backend.get("a") } == refusal)
    #expect(code { _ = try backend.items(inService: nil) } == refusal)
    #expect(code { try backend.set("a", [9]) } == refusal)
    #expect(code { _ = try backend.verify() } == refusal)
    #expect(code { try backend.trust() } == refusal)
    #expect(try vault.bytes == before)
  }

  @Test func aVaultIsUsedUnderThePinOfItsStateAndOfEarlierOnes() throws {
    let first = try pin()
    let identity = try altered(first) { ($0.sequence, $0.digest) = (0, [UInt8](repeating: 0, count: 16)) }
    let backend = pinned(first)
    try backend.set("a", [2])
    let second = try pin()
    try backend.compact()
    let third = try pin()
    #expect(Set([first, second, third]).count == 3)
    for pin in [first, second, third, identity] {
      #expect(try pinned(pin).get("a") == [2])
      let report = try pinned(pin).verify()
      #expect(report.showsPins && report.pin == third && report.identityPin == identity)
    }
    let mistyped = String(first.dropLast())
    for pins in [[third, mistyped], [mistyped, third]] { try expect(.configuration, under: pins) }
  }

  @Test func anotherVaultAndAnotherMasterKeyAreRefusedBeforeAKeyIsTried() throws {
    let own = try pin()
    let other = try TestVault()
    for (refusal, pin) in [
      (.unexpectedVault, try altered(own) { Self.invert(&$0.vault) }),
      (.unexpectedVault, try other.open().verify().pin),
      (.unexpectedKey, try altered(own) { Self.invert(&$0.masterCommitment) }),
    ] as [(SecretError.Code, String)] {
      try expect(refusal, under: [pin])
      let asked = Count()
      let backend = VaultBackend(
        path: vault.path, credentials: [FixedCredential.counted(asked)], options: options([pin]))
      #expect(code { try backend.unlock() } == refusal && asked.value == 0)
    }
  }

  /// Whoever held the former master key could have made the vault under the new one.
  @Test func aRekeyNeedsANewPin() throws {
    let old = try pin()
    try pinned(old).rekey()
    try expect(.unexpectedKey, under: [old])
    #expect(try pinned(pin()).get("a") == [1])
  }

  @Test func anOlderStateIsRefused() throws {
    let old = try vault.bytes
    try vault.open().set("a", [2])
    let pin = try pin()
    let running = pinned(pin)
    #expect(try running.get("a") == [2])
    try restore(old)
    try expect(.rolledBack, under: [pin])
    #expect(code { _ = try running.get("a") } == .rolledBack)
  }

  /// The state that contradicts the pin may be the newest one, or in the tail, in the root, or listed before the root.
  @Test func aForkIsRefused() throws {
    let common = try vault.bytes
    try vault.open().set("a", [2])
    let pin = try pin()
    try restore(common)
    try vault.open().set("a", [3])
    try expect(.rolledBack, under: [pin])
    try vault.open().set("a", [4])
    try expect(.rolledBack, under: [pin])
    try vault.open().compact()
    try expect(.rolledBack, under: [pin])
    try restore(common)
    try vault.open().compact()
    try expect(.rolledBack, under: [pin])
  }

  /// The vault has moved past the states that it lists. Only a holder of the master key can have done that.
  @Test func aStateBelowTheFloorIsUsedAndNotVerified() throws {
    /// Returns whether the vault shows the pinned state, or `nil` if it is refused.
    func isShown(_ sequence: Int, in disk: SimulatedDisk) throws -> Bool? {
      let pin = try altered(disk.openVault().verify().pin) { $0.sequence = sequence }
      let backend = disk.openVault(options: options([pin]))
      let refusal = code { _ = try backend.get("a") }
      #expect(refusal == nil || refusal == .rolledBack)
      return refusal == nil ? try backend.verify().showsPins : nil
    }
    let recent = (1...1024).map { Checkpoint(sequence: $0 + 10, tailTag: .zero) }
    let vault = ForgedVault(base: [.init("a", [1])], recent: recent, sequence: 1035)
    let disk = try vault.disk()
    #expect(try isShown(10, in: disk) == false && isShown(11, in: disk) == nil)
    // A rewrite lists the newest 1,024 changes.
    try disk.openVault().compact()
    #expect(try isShown(11, in: disk) == false && isShown(12, in: disk) == nil)
  }

  @Test func everyPinOfTheVaultHoldsAndOthersNeedAPlace() throws {
    let old = try vault.bytes
    let otherVault = try TestVault()
    let other = try otherVault.open().verify().pin
    let former = try pin()
    try vault.open().set("a", [2])
    let own = try pin()
    for pins in [[own, other], [other, own], ["\(vault.path)=\(own)", other]] {
      try expect(.configuration, under: pins)
    }
    let bound = ["\(vault.path)=\(own)", "\(otherVault.path)=\(other)"]
    for pins in [[own], [own, former], [former, own], bound, bound.reversed()] {
      let report = try vault.open(options: options(pins)).verify()
      #expect(report.showsPins && report.pin == own)
    }
    try expect(.unexpectedVault, under: [other, other])
    try restore(old)
    for pins in [[former, own], [own, former], bound] { try expect(.rolledBack, under: pins) }
    // A pin of the vault counts at every path, and that of another vault at none.
    try expect(.unexpectedVault, under: [bound[1]])
    try expect(.rolledBack, under: ["/elsewhere=\(own)", bound[1]])
  }

  @Test func aTextThatIsNoPinIsRefused() throws {
    for text in ["", "coffer-pin-v1:", String(try pin().dropLast()), try pin() + "\n"] {
      try expect(.configuration, under: [text])
    }
  }

  /// The pin names another vault. The creation ignores it, but the next use of the new vault is refused.
  @Test func theMakingOfAVaultIsNotJudged() throws {
    var options = recording
    options.pins = [try pin()]
    let path = vault.directory.file("new.vault")
    let backend = try VaultBackend.create(
      at: path, credential: FixedCredential.key.credential, options: options)
    #expect(code { try backend.unlock() } == .unexpectedVault)
  }
}
