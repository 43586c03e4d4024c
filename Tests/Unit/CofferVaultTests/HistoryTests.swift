import CofferCore
import CofferSimulation
import CofferTestSupport
import CofferVault
import CofferVaultFormat
import Foundation
import Synchronization
import Testing

/// Earlier versions of secrets: which ones a vault keeps, and which ones it drops.
@Suite struct HistoryTests {
  private static let day = 86_400.0

  /// A clock that a test sets.
  private final class Clock: Sendable {
    private let time = Mutex(1_700_000_000.0)
    var now: Date { Date(timeIntervalSince1970: time.withLock { $0 }) }
    func advance(_ seconds: Double) { time.withLock { $0 += seconds } }
  }

  private let clock = Clock()
  private let environment: VaultEnvironment
  private let vault: TestVault

  init() throws {
    let clock = clock
    environment = VaultEnvironment(now: { clock.now })
    vault = try TestVault(environment: environment)
  }

  private func open() -> VaultBackend { vault.open(environment: environment) }

  /// The values of the earlier versions, newest first.
  private func earlier(_ name: String, in backend: VaultBackend? = nil) throws -> [[UInt8]?] {
    let backend = backend ?? open()
    return try backend.versions(of: identifier(name)).filter { [.earlier, .conflict].contains($0.kind) }.map {
      try backend.secret(identifier(name), version: $0.number)?.value.array()
    }
  }

  @Test func aNewVaultKeepsTenVersionsForNinetyDays() throws {
    #expect(try open().historyLimit() == .standard)
    for value in 0..<13 as Range<UInt8> { try open().set("a", [value]) }
    for backend in [open(), try compacted()] {
      #expect(try backend.get("a") == [12])
      #expect(try earlier("a", in: backend) == (2..<12).reversed().map { [$0] })
      #expect(try backend.secret(identifier("a"), version: 2)?.value == nil)
    }
    clock.advance(90 * Self.day)
    #expect(try earlier("a").count == 10)
    clock.advance(0.001)
    #expect(try earlier("a").isEmpty)
    #expect(try compacted().get("a") == [12])
    #expect(try open().verify().earlierVersionCount == 0)
  }

  private func compacted() throws -> VaultBackend {
    try open().compact()
    return open()
  }

  /// The age counts from the change that replaced the value, not from when it was stored.
  @Test func theAgeOfAVersionCountsFromItsReplacement() throws {
    try open().set("a", [1])
    clock.advance(200 * Self.day)
    try open().set("a", [2])
    clock.advance(80 * Self.day)
    try open().set("a", [3])
    #expect(try earlier("a") == [[2], [1]])
    clock.advance(20 * Self.day)
    #expect(try earlier("a") == [[2]])
    // The version leaves the file when the vault is rewritten after a later change.
    try open().set("b", [1])
    #expect(try earlier("a", in: compacted()) == [[2]])
    // Setting the clock back does not restore a dropped version.
    clock.advance(-20 * Self.day)
    #expect(try earlier("a") == [[2]])
  }

  /// One change under a wrong clock drops no version, whether the clock is ahead or behind.
  @Test func oneChangeByAWrongClockDropsNoVersion() throws {
    for value: UInt8 in 1...3 { try open().set("a", [value]) }
    try open().set("b", [1])
    try open().remove(identifier("b"))
    try open().set("z", [1])
    clock.advance(400 * Self.day)
    // This change also rewrites the vault, because there is something to erase.
    try open().storeWithoutHistory(SecretBytes("z"), for: identifier("z"), metadata: nil)
    clock.advance(-400 * Self.day)
    for _ in 0..<10 {
      try open().set("c", [1])
      try open().compact()
    }
    #expect(try earlier("a") == [[2], [1]])
    #expect(try open().removedItems(inService: nil).map(\.identifier) == [identifier("b")])
    clock.advance(-1_700_000_000)
    try open().set("a", [4])
    clock.advance(1_700_000_000)
    #expect(try earlier("a", in: compacted()) == [[3], [2], [1]])
  }

  /// The age is measured at the change before a rewrite, so a vault that rarely changes drops a version a change late.
  @Test func aVaultThatIsChangedOnceAYearKeepsARemovedSecretForTwoChanges() throws {
    try open().set("a", [1])
    try open().remove(identifier("a"))
    try open().set("b", [1])
    var isLeft: [Bool] = []
    for year: UInt8 in 1...3 {
      clock.advance(365 * Self.day)
      // This change also rewrites the vault.
      try open().storeWithoutHistory(SecretBytes("\(year)"), for: identifier("b"), metadata: nil)
      isLeft.append(try open().verify().excessVersionCount > 0)
    }
    #expect(isLeft == [true, false, false])
  }

  @Test func versionsShowNumbersTimesAndMetadata() throws {
    let backend = open()
    let name = try identifier("a")
    let expires = Date(timeIntervalSince1970: 2_000_000_000)
    try backend.store(
      SecretBytes([1] as [UInt8]), for: name,
      metadata: SecretMetadata(label: "first", expires: expires, attributes: ["k": "v"]))
    let stored = clock.now
    clock.advance(10)
    try backend.set("other", [9])
    try backend.store(
      SecretBytes([2] as [UInt8]), for: name, metadata: SecretMetadata(label: "second"))
    let replaced = clock.now
    let versions = try backend.versions(of: name)
    #expect(versions.map(\.number) == [4, 2])
    #expect(versions.map(\.kind) == [.current, .earlier])
    #expect(versions.map(\.date) == [replaced, stored])
    #expect(versions[1].metadata.label == "first" && versions[1].metadata.attributes == ["k": "v"])
    #expect(versions[1].metadata.expires == expires)
    #expect(try backend.versions(of: identifier("none")).isEmpty)
    #expect(try backend.secret(name, version: 3)?.value == nil)
    #expect(try backend.secret(identifier("other"), version: 2)?.value == nil)
  }

  @Test func aRemovedSecretCanBeRestoredWithItsMetadata() throws {
    let name = try identifier("a")
    try open().store(
      SecretBytes([1] as [UInt8]), for: name, metadata: SecretMetadata(label: "mine"))
    try open().set("a", [2])
    clock.advance(5)
    try open().remove(name)
    for backend in [open(), try compacted()] {
      #expect(try backend.get("a") == nil && backend.items(inService: nil).isEmpty)
      #expect(try backend.versions(of: name).map(\.kind) == [.removal, .earlier, .earlier])
      let removed = RemovedSecret(identifier: name, removed: clock.now)
      #expect(try backend.removedItems(inService: nil) == [removed])
      #expect(try backend.removedItems(inService: "tests") == [removed])
      #expect(try backend.removedItems(inService: "others").isEmpty)
      #expect(try backend.verify().secretCount == 0)
    }
    #expect(try open().restore(name) != nil)
    #expect(try open().get("a") == [2] && open().item(name)?.metadata.label == "mine")
    #expect(try open().removedItems(inService: nil).isEmpty)
    let first = try #require(open().versions(of: name).last)
    #expect(try open().restore(name, version: first.number) != nil)
    #expect(try open().get("a") == [1])
    #expect(try open().restore(name, version: 1000) == nil && open().restore(identifier("none")) == nil)
    #expect(try open().verify().secretCount == 1)
  }

  @Test func aLowerLimitDropsTheVersionsBeyondItFromTheFile() throws {
    for value in 0..<5 as Range<UInt8> { try open().set("a", [value]) }
    #expect(try open().verify().earlierVersionCount == 4)
    try open().setHistoryLimit(#require(HistoryLimit(versions: 1, days: 0)))
    let report = try open().verify()
    #expect(report.earlierVersionCount == 1 && report.excessVersionCount == 0)
    #expect(try earlier("a") == [[3]])
    for value in 5..<9 as Range<UInt8> { try open().set("a", [value]) }
    try open().setHistoryLimit(.standard)
    #expect(try earlier("a") == [[7]], "a higher limit brings no version back")
  }

  @Test func aLimitOfNoneKeepsNothing() throws {
    try open().set("a", [1])
    try open().set("a", [2])
    try open().set("b", [3])
    try open().remove(identifier("b"))
    try open().setHistoryLimit(#require(HistoryLimit(versions: 1, days: 0)))
    #expect(try earlier("a") == [[1]] && earlier("b") == [[3]])
    clock.advance(100_000 * Self.day)
    #expect(try earlier("a") == [[1]])
    try open().setHistoryLimit(.none)
    #expect(try open().historyLimit() == .none)
    #expect(try earlier("a").isEmpty && open().versions(of: identifier("b")).isEmpty)
    #expect(try open().removedItems(inService: nil).isEmpty)
    try open().set("a", [4])
    #expect(try earlier("a").isEmpty && earlier("a", in: compacted()).isEmpty)
    #expect(try open().verify().earlierVersionCount == 0)
    // A higher limit does not bring dropped versions back.
    try open().setHistoryLimit(.standard)
    #expect(try earlier("a").isEmpty)
  }

  // MARK: Purging

  /// All sequences of 32 bytes of the file after its header and its commit slots.
  private func pieces() throws -> Set<[UInt8]> {
    let bytes = try vault.bytes
    return Set((12_288..<max(12_288, bytes.count - 31)).map { Array(bytes[$0..<$0 + 32]) })
  }

  /// The pieces of the sealed values of a secret's versions.
  private func sealed(_ name: String) throws -> Set<[UInt8]> {
    let file = try VaultFile(LocalMedium(path: vault.path, environment: environment).open())
    let keys = try CredentialChain([FixedCredential.key], options: .cheap, environment: environment)
      .unlock(file)
    let open = try VaultSnapshot(file, keys: keys)
    let bytes = try vault.bytes
    return Set(
      try open.records(identifier(name)).filter { !$0.isRemoval }.map {
        Array(bytes[$0.valueOffset..<$0.valueOffset + 32])
      })
  }

  @Test(arguments: [false, true]) func aPurgedSecretLeavesNothingInTheFile(_ isInBase: Bool) throws {
    for value in 1...3 as ClosedRange<UInt8> { try open().set("a", [value]) }
    try open().set("b", [9])
    try open().set("b", [8])
    if isInBase { try open().compact() }
    let doomed = try sealed("a")
    #expect(try doomed.count == 3 && pieces().isSuperset(of: doomed))
    #expect(try open().erase(identifier("a")))
    #expect(try pieces().isDisjoint(with: doomed))
    #expect(try open().get("a") == nil && open().versions(of: identifier("a")).isEmpty)
    #expect(try open().removedItems(inService: nil).isEmpty)
    #expect(try open().get("b") == [8] && earlier("b") == [[9]])
    #expect(try !open().erase(identifier("a")))
    let report = try open().verify()
    #expect(report.unacknowledgedBytes == 0 && report.secretCount == 1)
  }

  @Test func theHistoryOfARemovedSecretCanBePurged() throws {
    try open().set("a", [1])
    try open().remove(identifier("a"))
    let doomed = try sealed("a")
    #expect(try open().erase(identifier("a")))
    #expect(try pieces().isDisjoint(with: doomed) && open().versions(of: identifier("a")).isEmpty)
  }

  @Test func aValueStoredWithoutHistoryReplacesAllVersions() throws {
    for value in 1...3 as ClosedRange<UInt8> { try open().set("a", [value]) }
    let doomed = try sealed("a")
    try open().storeWithoutHistory(
      SecretBytes([4] as [UInt8]), for: identifier("a"), metadata: SecretMetadata(label: "l"))
    #expect(try pieces().isDisjoint(with: doomed))
    #expect(try open().get("a") == [4] && open().item(identifier("a"))?.metadata.label == "l")
    #expect(try open().versions(of: identifier("a")).map(\.kind) == [.current])
    // A secret can also be created without history. The history continues with the next change.
    try open().storeWithoutHistory(
      SecretBytes([5] as [UInt8]), for: identifier("new"), metadata: nil)
    try open().set("a", [6])
    #expect(try open().get("new") == [5] && earlier("a") == [[4]])
    #expect(try open().verify().secretCount == 2)
  }

  /// A change that keeps nothing hides the versions before it. The next rewrite leaves them out of the file.
  @Test func aRewriteDropsWhatAChangeWithoutHistoryHides() throws {
    for name in ["a", "b"] { for value in 1...2 as ClosedRange<UInt8> { try open().set(name, [value]) } }
    let doomed = try sealed("a").union(sealed("b"))
    try open().store(
      SecretBytes([3] as [UInt8]), for: identifier("a"), metadata: .newValue, history: .none)
    try open().remove(identifier("b"), history: .none)
    for backend in [open(), try compacted()] {
      #expect(try backend.get("a") == [3] && earlier("a", in: backend).isEmpty)
      #expect(try backend.versions(of: identifier("b")).isEmpty && backend.restore(identifier("b")) == nil)
      #expect(try backend.removedItems(inService: nil).isEmpty)
    }
    #expect(try doomed.count == 4 && pieces().isDisjoint(with: doomed))
  }

  // MARK: Merges

  /// A version that lost to the present value in a merge is kept, whatever the limit, until another value is stored.
  @Test func aVersionInConflictCountsUntilTheNextChange() throws {
    let lost = TaggedField(5, encode(2))
    let forged = ForgedVault(
      base: [.init("a", [1], fields: [lost]), .init("a", [2]), .init("b", [3]), .init("b", [4])],
      history: .none)
    let backend = try forged.disk().openVault()
    func values() throws -> [[UInt8]?] { try earlier("a", in: backend) }
    #expect(try values() == [[1]] && earlier("b", in: backend).isEmpty)
    #expect(try backend.verify().earlierVersionCount == 1 && backend.verify().excessVersionCount == 1)
    try backend.compact()
    #expect(try values() == [[1]] && backend.verify().excessVersionCount == 0)
    try backend.set("a", [5])
    #expect(try values().isEmpty && backend.verify().excessVersionCount == 2)
  }

  /// An erasure drops a version in conflict like any other earlier version.
  @Test func anErasureDropsAVersionInConflict() throws {
    let lost = TaggedField(5, encode(2))
    let forged = ForgedVault(base: [.init("a", [1], fields: [lost]), .init("a", [2])], history: .none)
    let purged = try forged.disk().openVault()
    #expect(try purged.erase(identifier("a")))
    #expect(try purged.verify().excessVersionCount == 0 && purged.versions(of: identifier("a")).isEmpty)
    let replaced = try forged.disk().openVault()
    try replaced.storeWithoutHistory(
      SecretBytes([3] as [UInt8]), for: identifier("a"), metadata: nil)
    #expect(try replaced.versions(of: identifier("a")).map(\.kind) == [.current])
    #expect(try replaced.verify().excessVersionCount == 0)
  }

  /// Such a file results from a merge after a purge on another device.
  @Test func nothingBeforeARecordThatKeepsNothingIsShownRestoredOrKept() throws {
    let nothing = TaggedField(7, [])
    let forged = ForgedVault(
      base: [.init("a", [1]), .init("a", [2], fields: [nothing]), .init("a", [3]), .init("b", [4])],
      tail: [.init("b", nil, fields: [nothing])])
    let backend = try forged.disk().openVault()
    for isCompacted in [false, true] {
      if isCompacted { try backend.compact() }
      #expect(try backend.get("a") == [3] && earlier("a", in: backend) == [[2]])
      #expect(try backend.restore(identifier("a"), version: 1) == nil)
      #expect(try backend.get("b") == nil && backend.removedItems(inService: nil).isEmpty)
      #expect(try backend.restore(identifier("b")) == nil)
      let report = try backend.verify()
      #expect(report.earlierVersionCount == 1 && report.excessVersionCount == (isCompacted ? 0 : 2))
    }
  }

  // MARK: Rewrites

  @Test func versionsAcrossBlocksAreFound() throws {
    let limit = try #require(HistoryLimit(versions: 100, days: 0))
    try open().setHistoryLimit(limit)
    let label = String(repeating: "x", count: 1000)
    let names = (0..<5).map { "name \($0)" }
    try open().withTransaction { transaction throws(SecretError) in
      for value in 0..<60 as Range<UInt8> {
        for name in names {
          try transaction.store(
            SecretBytes([value]), for: SecretIdentifier(service: "tests", account: name),
            metadata: SecretMetadata(label: label))
        }
      }
    }
    // 300 records of 1 KiB each: some 20 blocks, of which each secret has several.
    let backend = try compacted()
    for name in names {
      #expect(try backend.get(name) == [59])
      #expect(try earlier(name, in: backend) == (0..<59).reversed().map { [$0] })
      #expect(try backend.versions(of: identifier(name)).first?.kind == .current)
    }
    #expect(try backend.items(inService: nil).count == 5)
    try open().remove(identifier(names[2]))
    try open().set(names[3], [60])
    try open().rekey()
    #expect(try earlier(names[2]).count == 60 && earlier(names[3]).count == 60)
    #expect(try open().verify().earlierVersionCount == 59 * 3 + 60 + 60)
  }

  @Test func versionsBeyondTheLimitAreCountedApart() throws {
    try open().setHistoryLimit(#require(HistoryLimit(versions: 2, days: 0)))
    for value in 1...6 as ClosedRange<UInt8> { try open().set("a", [value]) }
    let report = try open().verify()
    #expect(report.earlierVersionCount == 2 && report.excessVersionCount == 3)
    #expect(try compacted().verify().excessVersionCount == 0)
  }

  @Test func aRekeyKeepsTheHistory() throws {
    try open().set("a", [1])
    clock.advance(1)
    try open().set("a", [2])
    try open().set("b", [3])
    clock.advance(1)
    try open().remove(identifier("b"))
    let before = try ["a", "b"].map { try open().versions(of: identifier($0)) }
    let removed = try open().removedItems(inService: nil)
    for _ in 0..<2 {
      try open().rekey()
      #expect(try ["a", "b"].map { try open().versions(of: identifier($0)) } == before)
      #expect(try open().removedItems(inService: nil) == removed)
      #expect(try earlier("a") == [[1]] && earlier("b") == [[3]])
      #expect(try open().historyLimit() == .standard)
    }
  }

  @Test func everyChangeOfATransactionIsAVersion() throws {
    try open().withTransaction { transaction throws(SecretError) in
      let name = try identifier("a")
      for value in 1...3 as ClosedRange<UInt8> {
        try transaction.store(SecretBytes([value]), for: name)
      }
      _ = try transaction.remove(name)
      try transaction.store(SecretBytes([4] as [UInt8]), for: name)
    }
    for backend in [open(), try compacted()] {
      #expect(try backend.get("a") == [4] && earlier("a", in: backend) == [[3], [2], [1]])
      let kinds = try backend.versions(of: identifier("a")).map(\.kind)
      #expect(kinds == [.current, .removal, .earlier, .earlier, .earlier])
    }
  }

  @Test func automaticRewritesKeepTheHistoryAndBoundTheFile() throws {
    var environment = environment
    environment.compactionThreshold = 4000
    let backend = vault.open(environment: environment)
    for value in 0..<200 as Range<UInt8> {
      try backend.set("a", [UInt8](repeating: value, count: 100))
    }
    #expect(try earlier("a").compactMap { $0?.first } == (189..<199).reversed())
    #expect(try vault.bytes.count < 12_288 + 20_000)
    #expect(try backend.verify().earlierVersionCount >= 10)
  }
}
