import CofferCore
import CofferTestSupport
import CofferVault
import CofferVaultFormat
import Synchronization
import Testing

/// The limits on the cost of a vault's passphrases: of each one, and of all together.
@Suite struct DerivationBudgetTests {
  private func vault() throws -> TestVault {
    let vault = try TestVault()
    try vault.open().set("name", [1, 2, 3])
    return vault
  }

  /// Options under which a passphrase is tried on at most `count` slots that cost as much as `.cheap` ones.
  private func limited(toSlots count: Int) -> VaultOptions {
    var options = VaultOptions.cheap
    options.maximumPassphraseWork = count * options.passphraseMemory
    return options
  }

  private func passphrase(_ index: Int) -> FixedCredential {
    FixedCredential(kind: .passphrase("pass \(index)"))
  }

  @Test func aPassphraseIsTriedOnEverySlotUpToItsLimitOfWork() throws {
    let vault = try vault()
    for index in 0..<6 { try vault.open().addKeySlot(passphrase(index).credential) }
    // The vault asks for the free memory before each derivation, so this counts the derivations.
    let derivations = Mutex(0)
    var environment = VaultEnvironment()
    environment.memoryLeft = {
      derivations.withLock { $0 += 1 }
      return nil
    }
    for (index, slots, code, count) in [
      (5, 6, nil, 6), (5, 5, .costLimitExceeded, 5), (2, 3, nil, 3), (3, 3, .costLimitExceeded, 3),
      (9, 6, .wrongKey, 6), (0, 0, .costLimitExceeded, 0),
    ] as [(Int, Int, SecretError.Code?, Int)] {
      derivations.withLock { $0 = 0 }
      let backend = vault.open(
        passphrase(index), options: limited(toSlots: slots), environment: environment)
      #expect(thrown { () throws(SecretError) in try backend.unlock() }?.code == code)
      #expect(derivations.withLock { $0 } == count)
    }
    #expect(try vault.open(.key, options: limited(toSlots: 0)).get("name") == [1, 2, 3])
    // The limit also applies when key slots are opened or added.
    derivations.withLock { $0 = 0 }
    let backend = vault.open(.key, options: limited(toSlots: 2), environment: environment)
    #expect(try backend.openKeySlots(with: [passphrase(4)]).ids.count == 1)
    #expect(derivations.withLock { $0 } == 2)
    derivations.withLock { $0 = 0 }
    #expect(
      thrown { () throws(SecretError) in try backend.addKeySlot(passphrase(9).credential) }?.code == .tooLarge
    )
    #expect(derivations.withLock { $0 } == 2)
  }

  @Test func aPassphraseThatWouldNotBeTriedIsNotAdded() throws {
    let vault = try vault()
    let options = limited(toSlots: 3)
    for index in 0..<3 { try vault.open(options: options).addKeySlot(passphrase(index).credential) }
    let before = try vault.bytes
    let error = #expect(throws: SecretError.self) {
      try vault.open(options: options).addKeySlot(passphrase(3).credential)
    }
    #expect(error?.code == .tooLarge)
    #expect(try vault.bytes == before)
    // A key costs nothing, and a replaced slot makes room.
    try vault.open(options: options).addKeySlot(FixedCredential.otherKey.credential)
    let slot = try #require(
      VaultBackend(path: vault.path, credentials: []).description().keySlots.first { $0.kind == .passphrase })
    let new = try vault.open(options: options).replaceKeySlot(id: slot.id, with: passphrase(4).credential)
    for index in [1, 2, 4] {
      #expect(try vault.open(passphrase(index), options: options).get("name") == [1, 2, 3])
    }
    var small = options
    small.maximumPassphraseMemory = options.passphraseMemory - 1024
    let large = #expect(throws: SecretError.self) {
      try vault.open(options: small).replaceKeySlot(id: new.id, with: passphrase(5).credential)
    }
    #expect(large?.code == .tooLarge)
    let created = #expect(throws: SecretError.self) {
      try VaultBackend.create(
        at: vault.directory.file("another"), credential: passphrase(1).credential, options: small)
    }
    #expect(created?.code == .tooLarge)
  }

  @Test func sixteenPassphrasesOfTheDefaultCostAreWithinTheLimits() {
    let options = VaultOptions()
    let work = options.passphraseMemory * options.passphrasePasses
    #expect(16 * work <= options.maximumPassphraseWork)
    #expect(options.passphraseMemory <= options.maximumPassphraseMemory)
  }

  /// The first source must not use up the work that the second one needs.
  @Test func eachPassphraseHasItsOwnLimit() throws {
    let vault = try vault()
    for index in 0..<3 { try vault.open().addKeySlot(passphrase(index).credential) }
    func open(toSlots count: Int) -> VaultBackend {
      VaultBackend(
        path: vault.path, credentials: [passphrase(9), passphrase(2)], options: limited(toSlots: count))
    }
    #expect(try open(toSlots: 3).get("name") == [1, 2, 3])
    #expect(
      thrown { () throws(SecretError) in try open(toSlots: 2).unlock() }?.code == .costLimitExceeded)
  }

  /// A passphrase is stretched before the vault is locked.
  @Test func aSlotThatAnotherProcessAddsMeanwhileCounts() throws {
    let vault = try vault()
    let options = limited(toSlots: 1)
    let added = Mutex(false)
    var environment = VaultEnvironment()
    environment.memoryLeft = {
      let isFirst = added.withLock { added in
        defer { added = true }
        return !added
      }
      if isFirst {
        #expect(throws: Never.self) {
          try vault.open(options: options).addKeySlot(passphrase(1).credential)
        }
      }
      return nil
    }
    let error = #expect(throws: SecretError.self) {
      try vault.open(options: options, environment: environment).addKeySlot(passphrase(2).credential)
    }
    #expect(error?.code == .tooLarge)
    #expect(try vault.open(passphrase(1), options: options).get("name") == [1, 2, 3])
    #expect(try VaultBackend(path: vault.path, credentials: []).description().keySlots.count == 2)
  }

  @Test func aSlotThatOnePassphraseOpensIsNotTriedAgain() throws {
    let vault = try vault()
    try vault.open().addKeySlot(passphrase(0).credential)
    let derivations = Mutex(0)
    var environment = VaultEnvironment()
    environment.memoryLeft = {
      derivations.withLock { $0 += 1 }
      return nil
    }
    let backend = vault.open(environment: environment)
    #expect(try backend.openKeySlots(with: [passphrase(0), passphrase(0), passphrase(1)]).ids.count == 2)
    #expect(derivations.withLock { $0 } == 1)
  }

  @Test func aCostBelowTheMinimumIsNotSet() throws {
    for (memory, passes) in [(8191, 1), (0, 1), (8192, 0), (-1, 1), (8192, -1)] {
      var options = VaultOptions.cheap
      (options.passphraseMemory, options.passphrasePasses) = (memory, passes)
      let vault = try vault()
      let error = thrown { () throws(SecretError) in
        try vault.open(options: options).addKeySlot(passphrase(0).credential)
      }
      #expect(error?.code == .configuration)
    }
    var least = VaultOptions.cheap
    (least.passphraseMemory, least.passphrasePasses) = (8192, 1)
    let vault = try vault()
    try vault.open(options: least).addKeySlot(passphrase(0).credential)
    #expect(try vault.open(passphrase(0)).get("name") == [1, 2, 3])
  }

  @Test func theWorkIsTheMemoryTimesThePasses() throws {
    let vault = try vault()
    var costly = VaultOptions.cheap
    costly.passphrasePasses = 3
    try vault.open(options: costly).addKeySlot(passphrase(0).credential)
    #expect(try vault.open(passphrase(0), options: limited(toSlots: 3)).get("name") == [1, 2, 3])
    #expect(
      thrown { () throws(SecretError) in
        try vault.open(passphrase(0), options: limited(toSlots: 2)).unlock()
      }?.code == .costLimitExceeded)
  }

  /// The product of the largest numbers of the format is larger than an `Int`.
  @Test func theLargestCostIsAboveEveryLimit() throws {
    let salt = [UInt8](repeating: 1, count: 16)
    let header = KeySlot.header(
      id: SystemRandomness().bytes16(), parameters: .passphrase(passes: .max, memory: .max, salt: salt),
      created: 0, label: "")
    let slot = try SlotKey(FixedCredential.otherKey.credential.secret)
      .wrap(
        FixedCredential.key.credential.secret, vault: SystemRandomness().bytes16(), slotHeader: header,
        randomness: SystemRandomness())
    var forged = ForgedVault(base: [.init("a", [1])])
    forged.slots = [slot]
    var options = VaultOptions.cheap
    options.maximumPassphraseMemory = .max
    let backend = VaultBackend(
      path: "vault", credentials: [passphrase(0)], options: options,
      environment: try VaultEnvironment(fileSystem: forged.disk(), user: 0))
    #expect(thrown { () throws(SecretError) in try backend.unlock() }?.code == .costLimitExceeded)
  }
}
