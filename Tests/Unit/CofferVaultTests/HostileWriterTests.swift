import CofferCore
import CofferSimulation
import CofferSystem
import CofferTestSupport
import CofferVault
import CofferVaultFormat
import Foundation
import Testing

/// Files that a holder of the key can write: every seal is authentic, and the sealed content is wrong.
@Suite struct HostileWriterTests {
  typealias Operation = @Sendable (VaultBackend) throws -> Void

  private static let ordinary = ForgedVault(
    base: [.init("base", [1]), .init("base", [2]), .init("gone", [3]), .init("gone", nil)],
    tail: [.init("tail", [4]), .init("tail", [5]), .init("removed", [6]), .init("removed", nil)])

  private func open(_ disk: SimulatedDisk) -> VaultBackend { disk.openVault() }

  /// Every operation that writes. Each succeeds on ``ordinary``.
  private static let operations: [(name: String, body: Operation)] = [
    ("store a new secret", { try $0.set("new", [7]) }),
    ("store", { try $0.set("base", [7]) }),
    ("remove", { try Self.expectChange($0.remove(identifier("base"))) }),
    ("remove from the tail", { try Self.expectChange($0.remove(identifier("tail"))) }),
    (
      "a transaction",
      { vault in
        try vault.withTransaction { transaction throws(SecretError) in
          let value = SecretBytes([8] as [UInt8])
          try transaction.store(value, for: SecretIdentifier(service: "tests", account: "a"))
          try transaction.store(
            value, for: SecretIdentifier(service: "tests", account: "base"), metadata: nil)
          _ = try transaction.remove(SecretIdentifier(service: "tests", account: "tail"))
        }
      }
    ),
    ("restore", { try Self.expectChange($0.restore(identifier("base")) != nil) }),
    ("restore what was removed", { try Self.expectChange($0.restore(identifier("gone")) != nil) }),
    (
      "store without history",
      { vault in
        try vault.storeWithoutHistory(
          SecretBytes([9] as [UInt8]), for: identifier("base"), metadata: nil)
      }
    ),
    ("purge", { try Self.expectChange($0.erase(identifier("tail"))) }),
    ("compact", { try $0.compact() }),
    ("rekey", { try $0.rekey() }),
    ("change the history limit", { try $0.setHistoryLimit(.none) }),
    ("add a key", { try $0.addKeySlot(FixedCredential.otherKey.credential) }),
    (
      "remove a key",
      { vault in
        let slot = try vault.addKeySlot(FixedCredential.otherKey.credential)
        try vault.removeKeySlots(ids: [slot.id])
      }
    ),
  ]

  private static func expectChange(_ changed: Bool) { #expect(changed) }

  /// Every operation that reads more than a single secret.
  private static let wholeReads: [Operation] = [
    { _ = try $0.verify() }, { _ = try $0.items(inService: nil) },
    { _ = try $0.removedItems(inService: nil) },
    { try $0.compact() }, { try $0.rekey() }, { try $0.setHistoryLimit(.none) },
    { try $0.addKeySlot(FixedCredential.otherKey.credential) },
  ]

  private func expect(
    _ code: SecretError.Code, from vault: ForgedVault, in bodies: [Operation],
    _ comment: Comment? = nil
  ) throws {
    let disk = try vault.disk()
    let before = disk.content(of: "vault")
    for body in bodies {
      let error = #expect(throws: SecretError.self, comment) { try body(open(disk)) }
      #expect(error?.code == code, comment)
      #expect(disk.content(of: "vault") == before && disk.names == ["vault"], comment)
    }
  }

  @Test func everyOperationWorksOnAForgeryWithoutAFault() throws {
    for operation in Self.operations {
      let disk = try Self.ordinary.disk()
      #expect(try open(disk).verify().secretCount == 2)
      try operation.body(open(disk))
      _ = try open(disk).verify()
    }
  }

  // MARK: Numbers

  /// A change beyond the last number would make a file that no reader accepts.
  @Test func theLastNumberCanBeReadAndNotChanged() throws {
    let last = Layout.numberLimit - 1
    var vault = Self.ordinary
    (vault.tail, vault.sequence) = ([], last)
    #expect(try open(vault.disk()).verify().sequence == last)
    #expect(try open(vault.disk()).get("base") == [2])
    let writing = Self.operations.filter { !$0.name.contains("tail") && $0.name != "purge" }
    try expect(.tooLarge, from: vault, in: writing.map(\.body))
    vault.sequence = last - 1
    try expect(.tooLarge, from: vault, in: writing.filter { $0.name == "a transaction" }.map(\.body))
    for body in [{ try $0.set("new", [2]) }, { try $0.compact() }] as [Operation] {
      let disk = try vault.disk()
      try body(open(disk))
      #expect(try open(disk).verify().sequence == last)
    }
  }

  @Test func aStateThatNamesAnotherEndOfTheTailIsRefusedOnOpening() throws {
    var vault = Self.ordinary
    vault.state = { $0.tailTag = .zero }
    try expect(.tampered, from: vault, in: [{ try $0.unlock() }])
    vault.state = { $0.sequence += 1 }
    try expect(.tampered, from: vault, in: [{ try $0.unlock() }])
  }

  // MARK: Sizes

  /// The file is sparse: a large one costs its maker nothing, so the size of the file must not decide.
  @Test(arguments: [Layout.maximumPartLength + Layout.sealOverhead + 1, 1 << 26, Int(UInt32.max)])
  func aRootAboveTheLimitIsRefusedBeforeItIsRead(_ length: Int) throws {
    var vault = Self.ordinary
    vault.tail = []
    vault.state = { state in
      state.baseEnd = state.rootOffset + length
      state.rootLength = length
      state.end = state.baseEnd
    }
    #expect(try longestRead(ofRefused: vault) <= 2 * Layout.pageSize)
  }

  /// The zeros of a hole in the file are a length like any other: nearly always of gigabytes.
  @Test func aFrameAboveTheLimitOfTheTailIsRefusedBeforeItIsRead() throws {
    var vault = Self.ordinary
    vault.tail = []
    vault.state = { state in state.end = state.baseEnd + (1 << 33) }
    #expect(try longestRead(ofRefused: vault) <= Layout.maximumReplayLength)
  }

  /// The longest read until the vault is refused. Its file ends with a hole of many gigabytes.
  private func longestRead(ofRefused vault: ForgedVault) throws -> Int {
    let directory = try TemporaryDirectory()
    let path = directory.file("vault")
    try Data(vault.bytes()).write(to: URL(filePath: path))
    #expect(chmod(path, 0o600) == 0 && truncate(path, 1 << 34) == 0)
    let disk = MeasuredFileSystem()
    let backend = VaultBackend(
      path: path, credentials: [FixedCredential.key], options: .cheap,
      environment: VaultEnvironment(fileSystem: disk))
    #expect(thrown { () throws(SecretError) in try backend.unlock() }?.code == .tampered)
    return disk.longestRead
  }

  @Test(arguments: [5, 1 << 20, Int(UInt32.max)])
  func aBlockThatClaimsMoreItemsThanFitIsRefused(_ count: Int) throws {
    var vault = Self.ordinary
    vault.root = { root in
      // The number of items of the only block: before its tag, which ends the root.
      root.replaceSubrange(root.count - 20..<root.count - 16, with: encode(UInt32(count)))
    }
    try expect(.tampered, from: vault, in: Self.wholeReads)
    try expect(.tampered, from: vault, in: [{ _ = try $0.get("base") }, { try $0.set("base", [1]) }])
  }

  @Test(arguments: [[[0, 2], [1]], [[0, 1], [1, 2]]]) func blocksThatOverlapAreRefused(
    _ blocks: [[Int]]
  ) throws {
    var vault = ForgedVault(base: [.init("a", [1]), .init("b", [2]), .init("c", [3])])
    vault.blocks = [[0, 1], [2]]
    #expect(try open(vault.disk()).verify().secretCount == 3)
    vault.blocks = blocks
    try expect(.tampered, from: vault, in: Self.wholeReads)
  }

  @Test func versionsOfOneSecretMayBeInTwoBlocks() throws {
    let names = (0..<12).map { "name \($0)" }
    var vault = ForgedVault(
      base: names.map { .init($0, [1]) } + names.map { .init($0, [2]) }, history: .standard)
    for size in [1, 2, 3, 8] {
      vault.blocks = stride(from: 0, to: 24, by: size).map { Array($0..<$0 + size) }
      let backend = open(try vault.disk())
      let report = try backend.verify()
      #expect(report.secretCount == 12 && report.earlierVersionCount == 12)
      for name in names {
        #expect(try backend.get(name) == [2] && backend.versions(of: identifier(name)).count == 2)
        #expect(try backend.get("no \(name)") == nil)
      }
      try backend.set("name 0", [3])
      try backend.compact()
      #expect(try backend.verify().earlierVersionCount == 13 && backend.items(inService: nil).count == 12)
    }
  }

  /// The tail is refused, whether the last frame lacks its value, its metadata or a part of its prefix.
  @Test func aTailThatEndsInsideAFrameIsRefused() throws {
    var vault = ForgedVault(tail: [.init("a", [1]), .init("b", [2])])
    let frame = try #require(VaultAnatomy(vault.bytes()).frames.last)
    for end in frame.dropFirst() {
      vault.state = { $0.end = end }
      try expect(.tampered, from: vault, in: [{ try $0.unlock() }], "\(end - frame.lowerBound) bytes")
    }
  }

  /// Each reader reads the whole tail, so its length is limited.
  @Test func aTailAboveTheLimitIsRefusedAndNeverWritten() throws {
    func change(labelLength: Int) -> ForgedVault.Change {
      ForgedVault.Change(
        "a", [1], metadata: SecretMetadata(label: String(repeating: "l", count: labelLength)))
    }
    /// The length of a frame without its value.
    func length(_ change: ForgedVault.Change) throws -> Int {
      try ForgedVault(tail: [change]).bytes().count - ForgedVault().bytes().count - 72
    }
    // Frames of two lengths, which together are exactly as long as the limit.
    let labelLength = try 1004 - length(change(labelLength: 1)) + 1
    let (short, long) = (change(labelLength: labelLength), change(labelLength: labelLength + 32))
    try #require(try length(short) == 1004 && length(long) == 1036)
    #expect(384 * 1004 + 640 * 1036 == Layout.maximumReplayLength)
    let tail = Array(repeating: short, count: 384) + Array(repeating: long, count: 640)
    var vault = ForgedVault(tail: tail.dropLast(2), history: .none)
    let disk = try vault.disk()
    let backend = open(disk)
    #expect(try backend.get("a") == [1])
    func store() throws {
      try backend.store(SecretBytes([2] as [UInt8]), for: identifier("a"), metadata: long.metadata)
    }
    // While the file cannot be replaced, changes are appended up to the limit.
    disk.refuse(.rename, EBUSY)
    var stored = 0
    var refusal: SecretError?
    while refusal == nil, stored < 10 {
      do {
        try store()
        stored += 1
      } catch let error as SecretError { refusal = error }
    }
    #expect(refusal?.code == .denied && stored == 2)
    #expect(try open(disk).get("a") == [2])
    disk.refuse(.rename, nil)
    try store()
    #expect(try open(disk).verify().secretCount == 1)
    vault.tail = tail
    #expect(try open(vault.disk()).get("a") == [1])
    vault.tail.append(ForgedVault.Change("a", [1]))
    try expect(.tampered, from: vault, in: [{ _ = try $0.get("a") }])
  }

  /// Slots of unknown kinds are kept, so a new slot may not fit beside them.
  @Test func aKeySlotThatDoesNotFitIntoTheHeaderIsRefused() throws {
    var vault = Self.ordinary
    let used = 64 + 64 + 149
    var rest = Layout.maximumHeaderLength - used - 100
    while rest > 0 {
      let slot = try ForgedVault.unknownSlot(min(rest, 65_535))
      vault.slots.append(slot)
      rest -= slot.bytes.count
    }
    #expect(try open(vault.disk()).verify().secretCount == 2)
    for credential in [FixedCredential.otherKey, FixedCredential(kind: .passphrase("other"))] {
      try expect(.tooLarge, from: vault, in: [{ try $0.addKeySlot(credential.credential) }])
    }
    let disk = try vault.disk()
    try open(disk).set("new", [1])
    try open(disk).compact()
    #expect(try open(disk).get("new") == [1])
  }

  /// Fields of unknown types are kept, and leave room for those that a rewrite and a rekey add.
  @Test func unknownFieldsOfTheRootStopNoOperation() throws {
    for (unknown, isAccepted) in [(65_536 - 6, true), (65_536 - 5, false)] {
      var vault = Self.ordinary
      vault.root = { root in
        // The fields follow the first 72 bytes: the history limit, in 4 + 6 + 12 bytes.
        let fields = encode(UInt32(6 + unknown), 0x1000 as UInt16, UInt32(unknown), zeros(unknown))
        root.replaceSubrange(72..<94, with: fields)
      }
      // Without a history limit there is nothing to restore.
      for operation in Self.operations where !operation.name.hasPrefix("restore") {
        let disk = try vault.disk()
        if isAccepted {
          try operation.body(open(disk))
          _ = try open(disk).verify()
        } else {
          try expect(.tampered, from: vault, in: [operation.body])
        }
      }
    }
  }

  /// Names of attributes are compared by their bytes in the file, and as texts by programs.
  @Test func ofTwoSpellingsOfOneNameTheFirstCountsWithItsValue() throws {
    let (decomposed, composed) = ("e\u{301}", "\u{e9}")
    let both = TaggedField(3, encode(sized(decomposed), sized("1"), sized(composed), sized("2")))
    let disk = try ForgedVault(base: [.init("a", [1], fields: [both])]).disk()
    let found = try #require(try open(disk).items(inService: nil).first?.metadata.attributes.first)
    #expect(found.key.utf8.elementsEqual(decomposed.utf8) && found.value == "1")
  }

  // MARK: Later versions

  private static let critical = [TaggedField(0x8000, [1])]

  @Test func aRecordOfALaterVersionConcernsOnlyItsOwnReaders() throws {
    let vault = ForgedVault(
      base: [.init("a", [1], fields: Self.critical), .init("b", [2])],
      tail: [.init("c", [3], fields: Self.critical), .init("d", [4])])
    for (name, value) in [("b", 2), ("d", 4)] as [(String, UInt8)] {
      #expect(try open(vault.disk()).get(name) == [value])
      #expect(try open(vault.disk()).versions(of: identifier(name)).count == 1)
      let disk = try vault.disk()
      try open(disk).set(name, [5])
      #expect(try open(disk).get(name) == [5])
    }
    for name in ["a", "c"] {
      try expect(
        .unsupportedVersion, from: vault,
        in: [{ _ = try $0.get(name) }, { try $0.set(name, [5]) }, { _ = try $0.remove(identifier(name)) }])
    }
    try expect(.unsupportedVersion, from: vault, in: Self.wholeReads)
  }

  @Test func aVaultThatMayOnlyBeReadIsNotChanged() throws {
    var vault = Self.ordinary
    vault.readOnlyCompatible = 1
    #expect(try open(vault.disk()).get("base") == [2])
    #expect(try open(vault.disk()).verify().secretCount == 2)
    try expect(.denied, from: vault, in: Self.operations.map(\.body))
  }

  // MARK: Master keys

  @Test func aLineageThatIsNotAuthenticIsRefusedByEveryRewrite() throws {
    var vault = Self.ordinary
    vault.lineage = [UInt8](repeating: 1, count: 40 + 32)
    try expect(.tampered, from: vault, in: [{ _ = try $0.verify() }] + Self.wholeReads.dropFirst(3))
    #expect(try open(vault.disk()).get("base") == [2])
  }

  // MARK: Names

  @Test func aRecordUnderAnotherNamesLookupIDIsRefusedByEveryRead() throws {
    let wrong: [ForgedVault.Change] = [.init("a", [1], claims: "zz"), .init("a", nil, claims: "zz")]
    let elsewhere = ForgedVault.Change("zz", [1], service: "other", claims: "zz")
    for records in [
      [wrong[0]], [wrong[0], wrong[1]], [.init("zz", [2]), wrong[0]], [wrong[0], .init("zz", [2])],
      [.init("zz", [2]), wrong[0], .init("zz", [3])], [elsewhere], [.init("zz", [2]), elsewhere],
    ] {
      let vault = ForgedVault(base: [.init("other", [3])] + records)
      try expect(.tampered, from: vault, in: Self.wholeReads, "\(records)")
      var reads: [Operation] = [
        { _ = try $0.versions(of: identifier("zz")) }, { try $0.set("zz", [1]) },
        { _ = try $0.erase(identifier("zz")) }, { _ = try $0.restore(identifier("zz")) },
      ]
      if records.last?.claims != nil {
        reads += [
          { _ = try $0.get("zz") }, { _ = try $0.item(identifier("zz")) },
          { _ = try $0.remove(identifier("zz")) },
        ]
      }
      try expect(.tampered, from: vault, in: reads, "\(records)")
      // The true owner of the name is not found, and other secrets can be read.
      #expect(try open(vault.disk()).get("a") == nil)
      #expect(try open(vault.disk()).get("other") == [3])
    }
  }

  @Test func aFrameUnderAnotherNamesLookupIDIsRefusedWhereItIsReturned() throws {
    for change in [
      ForgedVault.Change("a", [1], claims: "zz"), .init("a", nil, claims: "zz"),
      .init("zz", [1], service: "other", claims: "zz"),
    ] {
      let before = ForgedVault.Change("zz", [1])
      let vault = ForgedVault(base: [.init("other", [3])], tail: [.init("b", [1]), before, change])
      try expect(.tampered, from: vault, in: [{ _ = try $0.get("zz") }, { try $0.set("zz", [2]) }])
      try expect(.tampered, from: vault, in: Self.wholeReads)
      // The record does not concern other secrets.
      #expect(try open(vault.disk()).get("other") == [3] && open(vault.disk()).get("b") == [1])
    }
  }

  @Test func oneNameUnderTwoLookupIDsIsRefused() throws {
    let vault = ForgedVault(base: [.init("a", [1]), .init("a", [2], claims: "b")])
    try expect(.tampered, from: vault, in: Self.wholeReads)
  }

  /// A rewrite replaces the old file, so it must copy only authentic values.
  @Test func aRewriteAuthenticatesTheValuesThatItCopies() throws {
    let disk = try Self.ordinary.disk()
    var bytes = try #require(disk.content(of: "vault"))
    let anatomy = try VaultAnatomy(bytes)
    for value in anatomy.values.prefix(1) { bytes[value.lowerBound + 30] ^= 1 }
    disk.overwrite("vault", with: bytes)
    for body in [{ try $0.compact() }, { try $0.rekey() }, { try $0.setHistoryLimit(.standard) }]
      as [Operation]
    {
      let error = #expect(throws: SecretError.self) { try body(open(disk)) }
      #expect(error?.code == .tampered)
      #expect(disk.content(of: "vault") == bytes && disk.names == ["vault"])
    }
  }
}
