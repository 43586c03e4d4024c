import CofferCore
import CofferSimulation
import CofferTestSupport
import CofferVault
import CofferVaultFormat
import Synchronization
import Testing

@Suite struct KeySlotTests {
  private static let first = FixedCredential(kind: .passphrase("first"))
  private static let second = FixedCredential(kind: .passphrase("second"))

  private func opens(_ vault: TestVault, _ credential: FixedCredential) throws -> Bool {
    do throws(SecretError) {
      return try vault.open(credential).lookUp(SecretIdentifier(service: "tests", account: "name")) != nil
    } catch {
      guard error.code == .wrongKey else { throw error }
      return false
    }
  }

  private func vault(_ credential: FixedCredential) throws -> TestVault {
    let vault = try TestVault(credential)
    try vault.open(credential).set("name", [1, 2, 3])
    return vault
  }

  private static let dashes = (0..<32).map { [0xFB, 0xEF, 0xBE][$0 % 3] as UInt8 }

  @Test func eachSlotOpensTheVault() throws {
    let vault = try vault(.key)
    let slot = try vault.open().addKeySlot(Self.first.credential, label: "laptop")
    #expect(slot.label == "laptop")
    #expect(slot.kind == .passphrase && slot.cost?.memory == 64 << 10 && slot.cost?.passes == 1)
    #expect(try opens(vault, .key) && opens(vault, Self.first))
    #expect(try !opens(vault, Self.second))
    #expect(
      try VaultBackend(path: vault.path, credentials: []).description().keySlots.map(\.kind) == [
        .key, slot.kind,
      ])
  }

  @Test func aReplacedCredentialDoesNotOpenTheVault() throws {
    let vault = try vault(Self.first)
    let slot = try VaultBackend(path: vault.path, credentials: []).description().keySlots[0]
    try vault.open(Self.first).replaceKeySlot(id: slot.id, with: Self.second.credential)
    #expect(try !opens(vault, Self.first))
    #expect(try opens(vault, Self.second))
  }

  @Test func withTheKeysOfTheOtherSlotsAReplacedCredentialHasANewMasterKey() throws {
    let vault = try vault(Self.first)
    try vault.open(Self.first).addKeySlot(FixedCredential.key.credential)
    let slots = try VaultBackend(path: vault.path, credentials: []).description().keySlots
    // The master key that somebody with an old copy and the old passphrase knows.
    let former = try vault.open(Self.first).withMasterKey { _, master in master }
    func opensWithTheFormerMasterKey() throws -> Bool {
      let source = VaultCredentialSource("a copy") { _ throws(SecretError) in
        .masterKey(former)
      }
      let backend = VaultBackend(path: vault.path, credentials: [source])
      return thrown { () throws(SecretError) in try backend.unlock() } == nil
    }
    #expect(try opensWithTheFormerMasterKey())
    let backend = vault.open(Self.first)
    let before = try vault.bytes
    let error = #expect(throws: SecretError.self) {
      try backend.replaceKeySlot(
        id: slots[0].id, with: Self.second.credential, opened: backend.openKeySlots())
    }
    #expect(try error?.code == .locked && vault.bytes == before)
    try backend.replaceKeySlot(
      id: slots[0].id, with: Self.second.credential,
      opened: backend.openKeySlots(with: [FixedCredential.key]))
    #expect(try !opensWithTheFormerMasterKey() && !opens(vault, Self.first))
    #expect(try opens(vault, Self.second) && opens(vault, .key))
    #expect(
      try VaultBackend(path: vault.path, credentials: []).description().keySlots.map(\.kind)
        == slots.map(\.kind))
  }

  @Test func removingASlotChangesTheMasterKey() throws {
    let vault = try vault(.key)
    let slot = try vault.open().addKeySlot(Self.first.credential)
    let before = try vault.bytes
    try vault.open().removeKeySlots(ids: [slot.id])
    #expect(try opens(vault, .key))
    #expect(try !opens(vault, Self.first))
    #expect(try vault.open().verify().secretCount == 1)
    // No seal under the old master key is left: no 32 bytes are the same but the zeros in place of leases.
    let after = try vault.bytes
    var old = Set(stride(from: 4096, to: before.count - 32, by: 1).map { Array(before[$0..<$0 + 32]) })
    old.remove([UInt8](repeating: 0, count: 32))
    #expect(
      !stride(from: 4096, to: after.count - 32, by: 32).contains { old.contains(Array(after[$0..<$0 + 32])) }
    )
  }

  /// Another process changed the master key since the vault was opened. The vault goes on with the new one, and asks
  /// for no credential again.
  @Test func openingTheSlotsKeepsTheNewestMasterKey() throws {
    let asked = Count()
    let vault = try TestVault()
    let backend = VaultBackend(
      path: vault.path, credentials: [FixedCredential.counted(asked)], options: .cheap)
    try backend.set("a", [1])
    try vault.open().rekey()
    let opened = try backend.openKeySlots()
    let before = asked.value
    try vault.open().compact()
    #expect(try backend.get("a") == [1])
    try backend.rekey(opened: opened)
    #expect(asked.value == before)
  }

  /// A rekey does not change which byte of the lease file stands for a name.
  @Test func aLeaseOutlastsARekey() throws {
    let vault = try vault(.key)
    let (one, two) = (vault.open(), vault.open())
    let lease = try #require(try one.tryLease(identifier("a")))
    try two.rekey()
    #expect(try two.tryLease(identifier("a")) == nil)
    lease.release()
    #expect(try two.tryLease(identifier("a")) != nil)
  }

  @Test func removingASlotNeedsTheCredentialsOfTheOthers() throws {
    let vault = try vault(.key)
    let first = try vault.open().addKeySlot(Self.first.credential)
    _ = try vault.open().addKeySlot(Self.second.credential)
    let before = try vault.bytes
    let error = #expect(throws: SecretError.self) { try vault.open().removeKeySlots(ids: [first.id]) }
    #expect(error?.code == .locked)
    #expect(try vault.bytes == before)
    try vault.open().removeKeySlots(ids: [first.id], opened: vault.open().openKeySlots(with: [Self.second]))
    #expect(try opens(vault, .key) && opens(vault, Self.second))
    #expect(try !opens(vault, Self.first))
  }

  @Test func severalSlotsWhoseCredentialsAreLostAreRemovedTogether() throws {
    let vault = try vault(.key)
    let lost = try [Self.first, Self.second].map { try vault.open().addKeySlot($0.credential).id }
    let error = #expect(throws: SecretError.self) { try vault.open().removeKeySlots(ids: [lost[0]]) }
    #expect(error?.code == .locked)
    try vault.open().removeKeySlots(ids: Set(lost))
    #expect(try opens(vault, .key))
    #expect(try !opens(vault, Self.first) && !opens(vault, Self.second))
    #expect(try VaultBackend(path: vault.path, credentials: []).description().keySlots.count == 1)
  }

  @Test func everySlotWhoseCredentialIsMissingIsNamedInOneError() throws {
    let vault = try vault(.key)
    let first = try vault.open().addKeySlot(Self.first.credential, label: "laptop")
    let second = try vault.open().addKeySlot(Self.second.credential, label: "ci")
    let error = #expect(throws: SecretError.self) { try vault.open().rekey() }
    #expect(error?.code == .locked)
    for name in [first.id, second.id, "laptop", "ci"] { #expect(error?.reason.contains(name) ?? false) }
    let unnamed = try vault.open().addKeySlot(FixedCredential.otherKey.credential)
    #expect(unnamed.label == "")
    let other = #expect(throws: SecretError.self) { try vault.open().rekey() }
    #expect(other?.reason.hasSuffix(", \(unnamed.id).") == true)
    #expect(throws: SecretError.self) { try vault.open().removeKeySlots(ids: [first.id, "0"]) }
    #expect(try opens(vault, Self.first))
  }

  @Test func theSameCredentialTwiceIsRefused() throws {
    let vault = try vault(.key)
    let slot = try vault.open().addKeySlot(Self.first.credential)
    let before = try vault.bytes
    for credential in [FixedCredential.key, Self.first] {
      let error = #expect(throws: SecretError.self) { try vault.open().addKeySlot(credential.credential) }
      #expect(error?.code == .alreadyExists)
    }
    let replaced = #expect(throws: SecretError.self) {
      try vault.open().replaceKeySlot(id: slot.id, with: FixedCredential.key.credential)
    }
    #expect(replaced?.code == .alreadyExists)
    #expect(try vault.bytes == before)
    // The slot's own credential is accepted, for example for another cost.
    try vault.open().replaceKeySlot(id: slot.id, with: Self.first.credential)
    #expect(try opens(vault, Self.first))
  }

  /// The options of a reader that does not accept slots made with ``costly``.
  private static var limited: VaultOptions {
    var options = VaultOptions.cheap
    options.maximumPassphraseMemory = options.passphraseMemory
    return options
  }

  private static var costly: VaultOptions {
    var options = VaultOptions.cheap
    options.passphraseMemory *= 2
    return options
  }

  @Test func aSlotAboveTheCostLimitCanBeRemovedWithAPassphrase() throws {
    let vault = try vault(Self.first)
    let slot = try vault.open(Self.first, options: Self.costly).addKeySlot(Self.second.credential)
    let backend = vault.open(Self.first, options: Self.limited)
    let staying = try VaultBackend(path: vault.path, credentials: []).description().keySlots.map(\.id).filter {
      $0 != slot.id
    }
    #expect(try backend.openKeySlots(with: [Self.second]).ids == Set(staying))
    try backend.removeKeySlots(ids: [slot.id])
    #expect(try opens(vault, Self.first))
    #expect(try !opens(vault, Self.second))
  }

  @Test func aSlotAboveTheCostLimitThatStaysIsNamedInTheError() throws {
    let vault = try vault(Self.first)
    _ = try vault.open(Self.first, options: Self.costly).addKeySlot(Self.second.credential)
    let slot = try vault.open(Self.first).addKeySlot(FixedCredential.key.credential)
    let before = try vault.bytes
    let backend = vault.open(Self.first, options: Self.limited)
    let error = #expect(throws: SecretError.self) {
      try backend.removeKeySlots(ids: [slot.id], opened: backend.openKeySlots(with: [Self.second]))
    }
    #expect(error?.code == .costLimitExceeded)
    #expect(try vault.bytes == before)
  }

  // MARK: Master keys

  @Test func aKeptMasterKeyOpensTheVaultUntilItIsChanged() throws {
    let vault = try vault(.key)
    let kept = try vault.open().withMasterKey { id, master throws(SecretError) in
      #expect(try VaultBackend(path: vault.path, credentials: []).description().id == id)
      return source(ofMaster: master)
    }
    func open() -> VaultBackend { VaultBackend(path: vault.path, credentials: [kept]) }
    #expect(try open().get("name") == [1, 2, 3])
    #expect(try open().openKeySlots().ids.isEmpty)
    let refused = #expect(throws: SecretError.self) { try open().addKeySlot(kept.credential) }
    #expect(refused?.code == .invalidKey)
    try vault.open().rekey()
    let error = #expect(throws: SecretError.self) { try open().unlock() }
    #expect(error?.code == .locked)
    // If the kept master key does not fit, the next source is asked.
    let asked = Count()
    let now = try vault.open().withMasterKey { _, master throws(SecretError) in source(ofMaster: master) }
    try VaultBackend(path: vault.path, credentials: [now, FixedCredential.counted(asked)]).unlock()
    #expect(asked.value == 0)
    let both = VaultBackend(path: vault.path, credentials: [kept, FixedCredential.key])
    #expect(try both.get("name") == [1, 2, 3])
    try both.rekey()
    #expect(try both.get("name") == [1, 2, 3])
  }

  private func source(ofMaster master: SecretBytes) -> VaultCredentialSource {
    VaultCredentialSource("a kept master key", .masterKey(master))
  }

  @Test func theLastSlotCannotBeRemoved() throws {
    let vault = try vault(.key)
    let slot = try VaultBackend(path: vault.path, credentials: []).description().keySlots[0]
    let error = #expect(throws: SecretError.self) { try vault.open().removeKeySlots(ids: [slot.id]) }
    #expect(error?.code == .conflict)
    #expect(try opens(vault, .key))
  }

  /// The fields of such a slot are unknown, and so is its id.
  @Test func aSlotOfAnUnknownKindIsNamedByItsPosition() throws {
    var vault = ForgedVault(base: [.init("a", [1])])
    vault.slots = [try ForgedVault.unknownSlot(4)]
    let backend = try vault.disk().openVault()
    let error = #expect(throws: SecretError.self) { try backend.rekey() }
    #expect(error?.code == .locked && error?.description.contains("There is none for: slot-2.") == true)
    try backend.removeKeySlots(ids: ["slot-2"])
    try backend.rekey()
    #expect(try backend.get("a") == [1])
  }

  @Test func rekeyingKeepsEverySlotAndEverySecret() throws {
    let vault = try vault(.key)
    _ = try vault.open().addKeySlot(Self.first.credential)
    let backend = vault.open()
    for index in 0..<300 { try backend.set("\(index)", Array("value \(index)".utf8)) }
    try backend.rekey(opened: backend.openKeySlots(with: [Self.first]))
    #expect(try opens(vault, .key) && opens(vault, Self.first))
    #expect(try vault.open(Self.first).verify().secretCount == 301)
    #expect(try vault.open().get("299") == Array("value 299".utf8))
    // A backend that was open before the rekey uses the new key.
    #expect(try backend.get("17") == Array("value 17".utf8))
  }

  @Test func malformedCredentialsAndLabelsAreRefused() throws {
    let vault = try vault(.key)
    for credential in [FixedCredential(kind: .key([1])), FixedCredential(kind: .passphrase(""))] {
      let error = #expect(throws: SecretError.self) { try vault.open().addKeySlot(credential.credential) }
      #expect(error?.code == .invalidKey)
    }
    for label in [String(repeating: "x", count: 65), "a\0b"] {
      let error = #expect(throws: SecretError.self) {
        try vault.open().addKeySlot(FixedCredential.otherKey.credential, label: label)
      }
      #expect(error?.code == .invalidMetadata)
    }
    let longest = String(repeating: "x", count: 64)
    #expect(try vault.open().addKeySlot(FixedCredential.otherKey.credential, label: longest).label == longest)
  }

  @Test func theTextOfAKeyInPlaceOfItsBytesIsNamed() throws {
    let vault = try vault(.key)
    let text = try VaultKey.text(of: FixedCredential.otherKey.credential.secret).array()
    for (bytes, isText) in [(text, true), ([1, 2], false), (Array(repeating: 1, count: 62), false)] {
      let error = #expect(throws: SecretError.self) {
        try vault.open().addKeySlot(FixedCredential(kind: .key(bytes)).credential)
      }
      #expect(error?.code == .invalidKey && error?.reason.contains("the text of a key") == isText)
      #expect(error?.advice?.contains("VaultKey.parse") == isText)
    }
  }

  @Test(arguments: [0, 31, 33, 62, 10_000]) func bytesOfAnotherLengthHaveNoText(_ count: Int) {
    let error = thrown { () throws(SecretError) in
      _ = try VaultKey.text(of: SecretBytes([UInt8](repeating: 1, count: count)))
    }
    #expect(error?.code == .invalidKey)
  }

  /// A random key, a key whose text is all `_`, and one whose text is all `-`.
  @Test(arguments: [VaultKey.generate().array(), [UInt8](repeating: 0xFF, count: 32), Self.dashes])
  func keyTextRoundTripsAndDetectsTypos(_ keyBytes: [UInt8]) throws {
    let key = SecretBytes(keyBytes)
    let text = try VaultKey.text(of: key)
    #expect(try VaultKey.parse(text).isEqual(to: key))
    let bytes = text.array()
    #expect(bytes.count == 62)
    #expect(try VaultKey.parse(SecretBytes(bytes + [0x0A])).isEqual(to: key))
    // Every other byte at every position, including bytes that are not ASCII.
    for index in bytes.indices {
      for byte in UInt8.min ... .max where byte != bytes[index] {
        var changed = bytes
        changed[index] = byte
        do {
          _ = try VaultKey.parse(SecretBytes(changed))
          Issue.record("byte \(byte) is accepted at \(index)")
        } catch { #expect(error.code == .invalidKey) }
      }
    }
    for wrong in [[], Array(bytes.dropLast()), bytes + [0x41], bytes + [0x0A, 0x0A], bytes + [0x0D, 0x0A]] {
      #expect(throws: SecretError.self) { _ = try VaultKey.parse(SecretBytes(wrong)) }
    }
    let prefix = #expect(throws: SecretError.self) {
      _ = try VaultKey.parse(SecretBytes("coffer-key-v1:"))
    }
    #expect(prefix?.reason.contains("14 characters long") == true)
  }

  /// Computed with another implementation: BLAKE2b of the secret, and `crypto_kdf`.
  @Test func thePortalsSecretAlwaysStandsForTheSameKey() throws {
    for (secret, first, second) in [
      ([], "0d681349e442fb3b587aade665b991e3", "457b653d40daf217a05adb0d670e88ae"),
      (Array(0..<64), "33e84480222ae133e4a3dc4d92e87d91", "c8a93fc75ba81ce81518e5f157438a51"),
    ] as [([UInt8], String, String)] {
      let key = VaultKey.derived(fromPortal: SecretBytes(secret))
      #expect(key.array().withUnsafeBytes { [Bytes16($0).hex, Bytes16($0, at: 16).hex] } == [first, second])
    }
  }

  /// Each derivation asks for the free memory first, so this counts the derivations.
  @Test func noPassphraseIsStretchedTwiceForOneSlot() throws {
    let vault = try TestVault()
    let derivations = Atomic(0)
    var environment = VaultEnvironment()
    environment.memoryLeft = {
      derivations.add(1, ordering: .relaxed)
      return nil
    }
    func expect(_ count: Int, _ body: (VaultBackend) throws -> Void) throws {
      derivations.store(0, ordering: .relaxed)
      try body(vault.open(Self.first, environment: environment))
      #expect(derivations.load(ordering: .relaxed) == count)
    }
    let slot = try vault.open().addKeySlot(Self.first.credential)
    let other = try vault.open().addKeySlot(FixedCredential.otherKey.credential)
    let keys: [FixedCredential] = [.key, .otherKey]
    try expect(1) { try $0.rekey(opened: $0.openKeySlots(with: keys)) }
    try expect(1) {
      let opened = try $0.openKeySlots()
      try $0.rekey(opened: $0.openKeySlots(with: keys, adding: opened))
    }
    try expect(1) { try $0.removeKeySlots(ids: [other.id], opened: $0.openKeySlots(with: keys)) }
    // The old passphrase is stretched for the old slot, and the new one for the new slot.
    try expect(2) { try $0.replaceKeySlot(id: slot.id, with: Self.second.credential) }
  }
}
