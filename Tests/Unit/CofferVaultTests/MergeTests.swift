import CofferCore
import CofferTestSupport
import CofferVaultFormat
import Foundation
import Testing

@testable import CofferVault

/// Merges of copies that went their own ways.
@Suite struct MergeTests {
  private let directory: TemporaryDirectory
  private let vault: VaultBackend
  private let copy: String

  init() throws {
    directory = try TemporaryDirectory()
    copy = directory.file("copy")
    vault = try VaultBackend.create(at: directory.file("v"), credential: FixedCredential.key.credential)
  }

  private func branch(_ path: String) throws -> VaultBackend {
    try FileManager.default.copyItem(atPath: vault.path, toPath: path)
    return VaultBackend(path: path, credentials: [FixedCredential.key])
  }

  /// Opens a copy with a clock that stands still.
  private func open(_ path: String, atSecond second: Int = 1_000_000) -> VaultBackend {
    var environment = VaultEnvironment()
    environment.now = { Date(timeIntervalSince1970: Double(second)) }
    return VaultBackend(
      path: path, credentials: [FixedCredential.key], options: VaultOptions(), environment: environment)
  }

  private func values(_ backend: VaultBackend) throws -> [String: String] {
    Dictionary(
      uniqueKeysWithValues: try backend.secrets().map { ($0.identifier.account, try $0.value.string()) })
  }

  @Test func bothSidesChanges() throws {
    try vault.set("old", Array("1".utf8))
    let other = try branch(copy)
    try vault.set("ours", Array("2".utf8))
    try other.set("theirs", Array("3".utf8))
    try other.remove(identifier("old"))
    let report = try vault.merge(with: VaultCopy(at: copy))
    #expect(report.outcome == .merged)
    #expect(Set(report.changes.map(\.identifier.account)) == ["theirs", "old"])
    #expect(try values(vault) == ["ours": "2", "theirs": "3"])
    // The other side takes the merge as it is, and a second merge changes nothing.
    #expect(try other.merge(with: VaultCopy(at: vault.path)).outcome == .replaced)
    #expect(try vault.merge(with: VaultCopy(at: copy)).outcome == .unchanged)
    #expect(try vault.verify().pin == other.verify().pin)
  }

  @Test func theLaterOfTwoValuesIsPresentAndTheOtherIsAVersion() throws {
    let other = try branch(copy)
    try other.set("name", Array("earlier".utf8))
    try vault.set("name", Array("later".utf8))
    let report = try vault.merge(with: VaultCopy(at: copy))
    #expect(try report.conflicts == [identifier("name")])
    #expect(try values(vault) == ["name": "later"])
    let versions = try vault.versions(of: identifier("name"))
    #expect(versions.count == 2)
    #expect(try vault.secret(identifier("name"), version: versions[1].number)?.value.string() == "earlier")
  }

  // MARK: Values in conflict

  private func inConflict(_ name: String) throws -> Set<String> {
    let versions = try vault.versions(of: identifier(name)).filter { $0.kind == .conflict }
    return try Set(
      versions.compactMap { try vault.secret(identifier(name), version: $0.number)?.value.string() })
  }

  @Test func aValueInConflictStaysSoUntilSomebodyWhoSawItReplacesIt() throws {
    try vault.setHistoryLimit(#require(HistoryLimit(versions: 0, days: 0)))
    let (other, third) = (try branch(copy), try branch(directory.file("third")))
    try vault.set("name", Array("ann".utf8))
    try other.set("name", Array("bob".utf8))
    try vault.merge(with: VaultCopy(at: copy))
    try third.set("name", Array("carl".utf8))
    #expect(try vault.merge(with: VaultCopy(at: third.path)).conflicts == [identifier("name")])
    #expect(try inConflict("name") == ["ann", "bob"])
    // Who replaces the own value has not seen the others.
    try other.set("name", Array("bob again".utf8))
    try vault.merge(with: VaultCopy(at: copy))
    #expect(try values(vault) == ["name": "bob again"])
    #expect(try inConflict("name") == ["ann", "carl"])
    // Without a change, a conflict is not told again.
    #expect(try vault.merge(with: VaultCopy(at: third.path)).conflicts.isEmpty)
    try vault.set("name", Array("chosen".utf8))
    try third.set("other", Array("1".utf8))
    try vault.merge(with: VaultCopy(at: third.path))
    #expect(try values(vault) == ["name": "chosen", "other": "1"])
    #expect(try inConflict("name").isEmpty)
  }

  @Test func aConflictOfTheCopyIsReported() throws {
    let (other, third) = (try branch(copy), try branch(directory.file("third")))
    try other.set("name", Array("bob".utf8))
    try third.set("name", Array("carl".utf8))
    try other.merge(with: VaultCopy(at: third.path))
    #expect(try vault.merge(with: VaultCopy(at: copy)).conflicts == [identifier("name")])
  }

  @Test func aSecretInConflictIsNotMoved() throws {
    let other = try branch(copy)
    try vault.set("name", Array("ann".utf8))
    try other.set("name", Array("bob".utf8))
    try vault.merge(with: VaultCopy(at: copy))
    expectError(.conflict) {
      try vault.move(identifier("name"), to: identifier("new"), replacing: false)
    }
    #expect(try inConflict("name") == ["ann"])
  }

  @Test func ofTwoLimitsThatWereSetApartTheLargerCounts() throws {
    let other = try branch(copy)
    try other.setHistoryLimit(.none)
    let limit = try #require(HistoryLimit(versions: 3, days: 0))
    try vault.setHistoryLimit(limit)
    #expect(try vault.merge(with: VaultCopy(at: copy)).historyLimit == nil)
    #expect(try other.merge(with: VaultCopy(at: vault.path)).historyLimit == limit)
    #expect(try vault.historyLimit() == limit)
  }

  @Test func equalValuesAreNotInConflict() throws {
    let other = try branch(copy)
    try other.set("name", Array("same".utf8))
    try vault.set("name", Array("same".utf8))
    #expect(try vault.merge(with: VaultCopy(at: copy)).conflicts.isEmpty)
    #expect(try inConflict("name").isEmpty)
  }

  @Test func aRemovalTakesOnlyTheValueThatItsMakerSaw() throws {
    let other = try branch(copy)
    try vault.set("name", Array("ann".utf8))
    try other.set("name", Array("bob".utf8))
    try vault.merge(with: VaultCopy(at: copy))
    try other.remove(identifier("name"))
    try vault.merge(with: VaultCopy(at: copy))
    #expect(try values(vault) == ["name": "ann"])
    #expect(try inConflict("name").isEmpty)
  }

  @Test func whoeverSawEitherSideAcceptsTheMerge() throws {
    let other = try branch(copy)
    try vault.set("ours", Array("1".utf8))
    try other.set("theirs", Array("2".utf8))
    let pins = [try vault.pin(), try other.pin()]
    try vault.merge(with: VaultCopy(at: copy))
    for pin in pins {
      var options = VaultOptions()
      options.pins = [pin]
      let opened = VaultBackend(path: vault.path, credentials: [FixedCredential.key], options: options)
      #expect(try opened.verify().showsPins)
    }
  }

  // MARK: What the other side takes away

  @Test func anErasureMergesByItselfInBothDirections() throws {
    try vault.set("name", Array("1".utf8))
    let (other, before) = (try branch(copy), directory.file("before"))
    try vault.set("ours", Array("2".utf8))
    _ = try branch(before)
    try other.erase(identifier("name"))
    #expect(try vault.merge(with: VaultCopy(at: copy)).erased == [identifier("name")])
    #expect(try values(vault) == ["ours": "2"])
    #expect(try vault.versions(of: identifier("name")).isEmpty)
    #expect(try other.merge(with: VaultCopy(at: before)).erased.isEmpty)
    #expect(try values(other) == ["ours": "2"])
  }

  /// A removal that keeps nothing, or under the limit 0, leaves no record after the next rewrite.
  @Test(arguments: [true, false]) func aRemovalThatLeftNoRecordMergesByItself(withLimit: Bool) throws {
    if withLimit { try vault.setHistoryLimit(.none) }
    try vault.store(
      SecretBytes("1"), for: identifier("name"), metadata: .newValue, history: withLimit ? .unchanged : .none)
    let other = try branch(copy)
    try vault.set("ours", Array("2".utf8))
    try other.remove(identifier("name"))
    try other.addKeySlot(FixedCredential.otherKey.credential)
    #expect(try vault.merge(with: VaultCopy(at: copy)).erased == [identifier("name")])
    #expect(try values(vault) == ["ours": "2"])
  }

  @Test func anErasureTakesOnlyTheValueThatItsMakerSaw() throws {
    let other = try branch(copy)
    try vault.set("name", Array("ann".utf8))
    try other.set("name", Array("bob".utf8))
    try vault.merge(with: VaultCopy(at: copy))
    try other.erase(identifier("name"))
    try vault.merge(with: VaultCopy(at: copy))
    #expect(try values(vault) == ["name": "ann"])
    #expect(try vault.versions(of: identifier("name")).count == 1)
  }

  @Test func aChangeThatWasTakenAloneAndErasedDoesNotComeBackWithItsBranch() throws {
    let other = try branch(copy)
    try other.set("first", Array("1".utf8))
    let ancestor = directory.file("ancestor")
    try FileManager.default.copyItem(atPath: copy, toPath: ancestor)
    try other.set("name", Array("2".utf8))
    try vault.merge(with: VaultCopy(at: copy), ancestor: VaultCopy(at: ancestor))
    #expect(try values(vault) == ["name": "2"])
    try vault.erase(identifier("name"))
    try vault.merge(with: VaultCopy(at: copy))
    #expect(try values(vault) == ["first": "1"])
  }

  @Test func ofEqualValuesStoredApartARemovalTakesOne() throws {
    let other = try branch(copy)
    try other.set("name", Array("same".utf8))
    try vault.set("name", Array("same".utf8))
    let third = try branch(directory.file("third"))
    try vault.merge(with: VaultCopy(at: copy))
    try other.remove(identifier("name"))
    try vault.merge(with: VaultCopy(at: copy))
    #expect(try values(vault) == ["name": "same"])
    try third.remove(identifier("name"))
    try vault.merge(with: VaultCopy(at: third.path))
    #expect(try values(vault).isEmpty)
  }

  @Test func aSecretThatKeepsNothingKeepsNothingAfterAConflict() throws {
    try vault.store(SecretBytes("0"), for: identifier("name"), metadata: .newValue, history: .none)
    _ = try branch(copy)
    try open(copy, atSecond: 3_000_000_000).set("name", Array("1".utf8))
    try open(vault.path, atSecond: 3_000_000_001).set("name", Array("2".utf8))
    #expect(try vault.merge(with: VaultCopy(at: copy)).conflicts == [identifier("name")])
    #expect(try inConflict("name") == ["1"])
    for value in ["3", "4"] { try vault.set("name", Array(value.utf8)) }
    #expect(try vault.versions(of: identifier("name")).count == 1)
  }

  @Test func aLoweredLimitIsNotRaisedByAMerge() throws {
    let other = try branch(copy)
    try other.setHistoryLimit(#require(HistoryLimit(versions: 1, days: 0)))
    try vault.set("ours", Array("1".utf8))
    let merged = try branch(directory.file("merged"))
    try merged.merge(with: VaultCopy(at: copy))
    #expect(try merged.historyLimit().versions == 1)
    try vault.set("more", Array("1".utf8))
    for one in [copy, merged.path] {
      try vault.merge(with: VaultCopy(at: one))
      #expect(try vault.historyLimit().versions == 1)
    }
  }

  @Test func anOlderFileOnOurCommitUndoesNothing() throws {
    try vault.set("rotated", Array("old".utf8))
    try vault.set("removed", Array("1".utf8))
    _ = try branch(copy)
    try vault.set("rotated", Array("new".utf8))
    try vault.remove(identifier("removed"))
    try vault.set("added", Array("2".utf8))
    let ancestor = directory.file("ancestor")
    _ = try branch(ancestor)
    let report = try vault.merge(with: VaultCopy(at: copy), ancestor: VaultCopy(at: ancestor))
    #expect(Set(report.takenBack.map(\.identifier.account)) == ["rotated", "removed", "added"])
    #expect(report.changes.isEmpty)
    #expect(try values(vault) == ["rotated": "new", "added": "2"])
    // A revert undoes it, and everything stays in the history.
    try vault.merge(with: VaultCopy(at: copy), ancestor: VaultCopy(at: ancestor), undoing: true)
    #expect(try values(vault) == ["rotated": "old", "removed": "1"])
    #expect(try vault.versions(of: identifier("rotated")).count == 3)
  }

  @Test func anAncestorChoosesNoHistoryLimit() throws {
    try vault.setHistoryLimit(#require(HistoryLimit(versions: 1, days: 0)))
    _ = try branch(copy)
    try vault.setHistoryLimit(#require(HistoryLimit(versions: 5, days: 0)))
    let ancestor = directory.file("ancestor")
    _ = try branch(ancestor)
    try vault.merge(with: VaultCopy(at: copy), ancestor: VaultCopy(at: ancestor), undoing: true)
    #expect(try vault.historyLimit().versions == 5)
  }

  @Test func oneChangeOfThreeIsTaken() throws {
    let other = try branch(copy)
    try other.set("first", Array("1".utf8))
    try other.set("second", Array("2".utf8))
    let ancestor = directory.file("ancestor")
    try FileManager.default.copyItem(atPath: copy, toPath: ancestor)
    try other.set("third", Array("3".utf8))
    try vault.set("ours", Array("4".utf8))
    let report = try vault.merge(with: VaultCopy(at: copy), ancestor: VaultCopy(at: ancestor))
    #expect(try Set(report.leftOut) == [identifier("first"), identifier("second")])
    #expect(try values(vault) == ["third": "3", "ours": "4"])
    // The others come with the whole branch.
    try vault.merge(with: VaultCopy(at: copy))
    #expect(try values(vault) == ["first": "1", "second": "2", "third": "3", "ours": "4"])
  }

  // MARK: Merges of merges

  @Test func aChangeThatAnotherMergeMovedIsNotLost() throws {
    let third = try branch(directory.file("third"))
    try vault.set("name", Array("1".utf8))
    let (other, ancestor) = (try branch(copy), try VaultCopy(at: copy))
    try vault.set("ours", Array("2".utf8))
    try third.set("third", Array("3".utf8))
    try other.merge(with: VaultCopy(at: third.path))
    try vault.merge(with: VaultCopy(at: copy), ancestor: ancestor)
    #expect(try values(vault) == ["name": "1", "ours": "2", "third": "3"])
  }

  @Test func anErasedSecretDoesNotComeBackByAnotherMerge() throws {
    let third = try branch(directory.file("third"))
    try vault.set("name", Array("1".utf8))
    let other = try branch(copy)
    try vault.erase(identifier("name"))
    try third.set("third", Array("3".utf8))
    try other.merge(with: VaultCopy(at: third.path))
    try vault.merge(with: VaultCopy(at: copy))
    #expect(try values(vault) == ["third": "3"])
    #expect(try vault.versions(of: identifier("name")).isEmpty)
  }

  @Test func changesOfOneMomentAreToldApart() throws {
    for _ in 0..<2 {
      try open(vault.path).set("name", Array("1".utf8))
      try open(vault.path).remove(identifier("name"))
    }
    try open(vault.path).set("name", Array("1".utf8))
    _ = try branch(copy)
    try open(copy).remove(identifier("name"))
    try open(vault.path).set("ours", Array("2".utf8))
    _ = try branch(directory.file("before"))
    try open(vault.path).merge(with: VaultCopy(at: copy))
    #expect(try values(vault) == ["ours": "2"])
    try open(copy).merge(with: VaultCopy(at: directory.file("before")))
    #expect(try values(open(copy)) == ["ours": "2"])
  }

  @Test func aRemovalIsNotTakenForAnEarlierOneOfTheSameMoment() throws {
    try open(vault.path).setHistoryLimit(#require(HistoryLimit(versions: 1, days: 0)))
    try open(vault.path).set("name", Array("1".utf8))
    try open(vault.path).remove(identifier("name"))
    for value in ["2", "3"] { try open(vault.path).set("name", Array(value.utf8)) }
    _ = try branch(copy)
    try open(copy).remove(identifier("name"))
    // The rewrite drops the first removal.
    try open(copy).compact()
    try open(vault.path).set("ours", Array("4".utf8))
    try open(vault.path).merge(with: VaultCopy(at: copy))
    #expect(try values(vault) == ["ours": "4"])
  }

  // MARK: What is refused

  @Test func aMergeOfAnotherStateThanThePreviewedOneIsRefused() throws {
    let other = try branch(copy)
    try other.set("theirs", Array("1".utf8))
    let copied = try VaultCopy(at: copy)
    let found = try vault.mergePreview(with: copied)
    try vault.set("ours", Array("2".utf8))
    expectError(.conflict) { _ = try vault.merge(with: copied, previewed: found) }
    #expect(try values(vault) == ["ours": "2"])
  }

  @Test func aCopyThatMayOnlyBeReadIsRefused() throws {
    var forged = ForgedVault()
    try Data(forged.bytes()).write(to: URL(filePath: vault.path))
    forged.readOnlyCompatible = 1
    let copied = VaultCopy(try forged.bytes(), named: "copy")
    expectError(.denied) { try vault.merge(with: copied) }
  }

  // MARK: Members

  @Test func membersOfBothSidesStayAndRemovedOnesDoNotComeBack() throws {
    let removed = try vault.addKeySlot(FixedCredential.otherKey.credential, label: "removed")
    let other = try branch(copy)
    let identity = try VaultIdentity.generate(isPostQuantum: false)
    try other.addKeySlots(for: [try #require(identity.recipient)], label: "theirs")
    try other.set("name", Array("1".utf8))
    try vault.replaceKeySlot(
      id: removed.id, with: FixedCredential(kind: .key([UInt8](repeating: 9, count: 32))).credential,
      label: "ours")
    try vault.merge(with: VaultCopy(at: copy))
    #expect(try vault.description().keySlots.map(\.label) == ["", "ours", "theirs"])
    try other.merge(with: VaultCopy(at: vault.path))
    #expect(try Set(other.description().keySlots.map(\.label)) == ["", "ours", "theirs"])
  }

  @Test func theKeyThatOpenedTheVaultIsNotRemovedUnasked() throws {
    let other = try branch(copy)
    let slot = try vault.description().keySlots[0].id
    try other.replaceKeySlot(id: slot, with: FixedCredential.otherKey.credential, label: "theirs")
    try other.setHistoryLimit(#require(HistoryLimit(versions: 900, days: 0)))
    for _ in 0..<2 {
      expectError(.conflict) { try vault.merge(with: VaultCopy(at: copy)) }
      let found = try vault.mergePreview(with: VaultCopy(at: copy))
      #expect(found.locksOut)
      #expect(found.addedSlots.map(\.label) == ["theirs"])
      #expect(found.removedSlots.map(\.id) == [slot])
      #expect(found.historyLimit?.versions == 900)
      // First the copy goes on from the vault, then both were changed.
      try vault.set("ours", Array("1".utf8))
    }
    let found = try vault.mergePreview(with: VaultCopy(at: copy))
    _ = try vault.merge(with: VaultCopy(at: copy), previewed: found)
    let opened = VaultBackend(path: vault.path, credentials: [FixedCredential.otherKey])
    #expect(try values(opened) == ["ours": "1"])
  }

  @Test func aRecipientWithSlotsOnBothSidesKeepsOne() throws {
    let identity = try VaultIdentity.generate(isPostQuantum: false)
    let recipient = try #require(identity.recipient)
    let other = try branch(copy)
    for one in [vault, other] { try one.addKeySlots(for: [recipient], label: "twice") }
    // In one of the two directions, the slot that opened the vault is left out.
    for (mine, theirs) in [(vault, other), (other, vault)] {
      let path = directory.file("opened")
      try? FileManager.default.removeItem(atPath: path)
      try FileManager.default.copyItem(atPath: mine.path, toPath: path)
      var options = VaultOptions()
      options.pins = [try mine.pin()]
      let opened = VaultBackend(
        path: path, credentials: [FixedCredential(kind: .identity(identity))], options: options)
      try opened.merge(with: VaultCopy(at: theirs.path))
      #expect(try opened.description().keySlots.map(\.label) == ["", "twice"])
    }
  }

  @Test func copiesUnderAnotherMasterKeyAreRefused() throws {
    let other = try branch(copy)
    try other.rekey()
    expectError(.unexpectedKey) { try vault.merge(with: VaultCopy(at: copy)) }
    let foreign = directory.file("foreign")
    try VaultBackend.create(at: foreign, credential: FixedCredential.key.credential)
    expectError(.unexpectedVault) { try vault.merge(with: VaultCopy(at: foreign)) }
    // The same as ancestors: a commit is not taken as a branch because its ancestor cannot be used.
    let third = directory.file("third")
    try branch(third).set("name", Array("1".utf8))
    try vault.set("ours", Array("2".utf8))
    for (ancestor, code) in [(foreign, SecretError.Code.unexpectedVault), (copy, .unexpectedKey)] {
      for undoing in [false, true] {
        expectError(code) {
          try vault.merge(with: VaultCopy(at: third), ancestor: VaultCopy(at: ancestor), undoing: undoing)
        }
      }
    }
    #expect(try values(vault) == ["ours": "2"])
  }

  @Test func aDamagedCopyIsRefused() throws {
    let other = try branch(copy)
    try other.set("name", Array("1".utf8))
    var bytes = try Data(contentsOf: URL(filePath: copy))
    bytes[bytes.count - 1] ^= 1
    try bytes.write(to: URL(filePath: copy))
    let before = try Data(contentsOf: URL(filePath: vault.path))
    expectError(.tampered) { try vault.merge(with: VaultCopy(at: copy)) }
    #expect(try Data(contentsOf: URL(filePath: vault.path)) == before)
  }

  private func expectError(_ code: SecretError.Code, _ body: () throws -> Void) {
    #expect { try body() } throws: { ($0 as? SecretError)?.code == code }
  }
}
