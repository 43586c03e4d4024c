import CofferVaultFormat
import CofferCore
import CofferTestSupport
import CofferSimulation
import CofferVault
import Testing

/// Files that a holder of the key can write: every seal is authentic, and the sealed content is wrong.
@Suite struct HostileWriterTests {
  private let disk = SimulatedDisk()
  private let environment: VaultEnvironment

  init() throws {
    environment = VaultEnvironment(fileSystem: disk, user: 0)
    try VaultBackend.create(
      at: "vault", credential: FixedCredential.key.credential, label: "", options: .cheap,
      environment: environment)
    try open().set("base", [1])
    try open().compact()
  }

  private func open() -> VaultBackend {
    VaultBackend(
      path: "vault", credentials: [FixedCredential.key], options: .cheap, environment: environment)
  }

  /// Seals the root again with a changed index, and both commit slots with changed states.
  private func forge(
    state change: (inout CommitState) -> Void = { _ in },
    root changeRoot: (inout BaseIndex) -> Void = { _ in }
  ) throws {
    let vault = try VaultFile(path: "vault", environment: environment)
    let keys = try CredentialChain([FixedCredential.key], options: .cheap, environment: environment).unlock(
      vault)
    var state = try CommitSlots(reading: vault, keys: keys).state
    var bytes = try #require(disk.content(of: "vault"))
    var index = try BaseIndex(
      parsing: keys.open(
        Array(bytes[state.rootOffset..<state.baseEnd]), tag: state.rootTag,
        .root(file: vault.header.fileID, offset: state.rootOffset)),
      start: vault.baseStart, rootOffset: state.rootOffset)
    changeRoot(&index)
    let root = keys.seal(index.bytes, .root(file: vault.header.fileID, offset: state.rootOffset))
    bytes.replaceSubrange(state.rootOffset..<state.baseEnd, with: root)
    (state.rootTag, state.tailTag) = (Bytes16(tagOf: root), Bytes16(tagOf: root))
    change(&state)
    for slot in 0...1 {
      let start = vault.headerLength + slot * Layout.pageSize
      let page = keys.seal(state.bytes, .commitSlot(slot, headerHash: vault.headerHash))
      bytes.replaceSubrange(start..<start + Layout.pageSize, with: page)
    }
    disk.overwrite("vault", with: bytes)
  }

  private func expectTampered(_ body: () throws -> Void) {
    let error = #expect(throws: SecretError.self) { try body() }
    #expect(error?.code == .tampered)
  }

  /// A change beyond the last number would make a file that no reader accepts.
  @Test func theLastNumberCanBeReadAndNotChanged() throws {
    let last = (1 << 62) - 1
    try forge(state: { $0.sequence = last - 1 }, root: { $0.sequence = last - 1 })
    func expectLimit(_ body: (VaultBackend) throws -> Void) {
      let before = disk.content(of: "vault")
      let error = #expect(throws: SecretError.self) { try body(open()) }
      #expect(error?.code == .tooLarge)
      #expect(disk.content(of: "vault") == before && disk.names == ["vault"])
    }
    expectLimit { vault in
      try vault.transaction { transaction throws(SecretError) in
        for name in ["a", "b"] {
          try transaction.store(
            SecretBytes(copying: [1] as [UInt8]), for: SecretIdentifier(service: "tests", account: name),
            metadata: nil)
        }
      }
    }
    let beforeTheLast = try #require(disk.content(of: "vault"))
    for isRewrite in [false, true] {
      disk.overwrite("vault", with: beforeTheLast)
      if isRewrite { try open().compact() } else { try open().set("new", [2]) }
      #expect(try open().verify().checkpoint.hasPrefix("\(last)-"))
      #expect(try open().get("base") == [1])
      expectLimit { try $0.set("base", [3]) }
      expectLimit { try $0.remove(identifier("base")) }
      expectLimit { try $0.removeWithHistory(identifier("base")) }
      expectLimit { try $0.compact() }
      expectLimit { try $0.rekey() }
      expectLimit { try $0.setHistoryLimit(.none) }
    }
  }

  @Test func aForgeryWithoutChangesIsAValidVault() throws {
    try forge()
    #expect(try open().get("base") == [1])
    #expect(try open().verify().secretCount == 1)
  }

  @Test(arguments: [0, 2, 1 << 42, (1 << 62) - 1])
  func aWrongNumberOfSecretsIsRefusedByEveryFullRead(_ count: Int) throws {
    try forge(state: { $0.secretCount = count })
    expectTampered { _ = try open().verify() }
    expectTampered { _ = try open().items(inService: nil) }
    // A rewrite does not correct it silently.
    expectTampered { try open().compact() }
    expectTampered { try open().rekey() }
  }

  @Test(arguments: [2, 1 << 20, Int(UInt32.max)])
  func aBlockThatClaimsMoreItemsThanFitIsRefused(_ count: Int) throws {
    try forge(root: { index in
      index.itemCount = count
      index.blocks[0].itemCount = count
    })
    expectTampered { _ = try open().get("base") }
    expectTampered { _ = try open().items(inService: nil) }
    expectTampered { _ = try open().verify() }
  }
}
