import CofferCore
import CofferSimulation
import CofferTestSupport
@testable import CofferVault
import CofferVaultFormat
import FoundationEssentials
import Glibc
import Testing

/// The record of a vault's master key for all paths: a removed key does not come back at another path, and a person
/// decides about copies.
@Suite struct RevokedKeyElsewhereTests: KnownVaultSuite {
  let vault: TestVault
  let states: TemporaryDirectory
  private let elsewhere: String

  init() throws {
    vault = try TestVault()
    states = try TemporaryDirectory()
    try vault.directory.makeDirectory("two")
    elsewhere = vault.directory.file("two/copy.vault")
  }

  /// Removes the slot of the other key, and puts the file from before it at the other path. Returns that file.
  @discardableResult
  private func revoke() throws -> [UInt8] {
    try fresh().set("a", [1])
    let slot = try fresh().addKeySlot(FixedCredential.otherKey.credential)
    let before = try vault.bytes
    try fresh().removeKeySlots(ids: [slot.id])
    try write(before, to: elsewhere)
    return before
  }

  private func bytes(at path: String) throws -> [UInt8] { try Array(Data(contentsOf: URL(filePath: path))) }

  private func withPins(_ pins: [String], at path: String) -> VaultBackend {
    var options = recording
    options.pins = pins
    return VaultBackend(path: path, credentials: [FixedCredential.key], options: options)
  }

  @Test func aRemovedKeyIsRefusedAtEveryPath() throws {
    let before = try revoke()
    let pin = try VaultBackend(path: elsewhere, credentials: [FixedCredential.key], options: .cheap).pin()
    for backend in [fresh(at: elsewhere), withPins([pin], at: elsewhere)] {
      let error = #expect(throws: SecretError.self) { try backend.set("b", [1]) }
      #expect(error?.code == .unexpectedKey)
      #expect(error?.reason.contains(elsewhere) == true && error?.reason.contains(vault.path) == true)
      #expect(code { _ = try backend.get("a") } == .unexpectedKey)
      #expect(code { _ = try backend.verify() } == .unexpectedKey)
    }
    #expect(try bytes(at: elsewhere) == before)
    #expect(try fresh().get("a") == [1])
  }

  private func open(at path: String, _ change: (inout VaultOptions) -> Void) -> VaultBackend {
    var options = recording
    change(&options)
    return VaultBackend(path: path, credentials: [FixedCredential.key], options: options)
  }

  /// An older copy, or another branch, is put at a path where nothing was seen.
  @Test(arguments: [false, true]) func anOlderStateIsRefusedAtANewPath(isBranch: Bool) throws {
    try fresh().set("a", [1])
    try write(vault.bytes, to: elsewhere)
    if isBranch {
      for value in 3...5 as ClosedRange<UInt8> {
        try VaultBackend(path: elsewhere, credentials: [FixedCredential.key], options: .cheap).set("a", [value])
      }
    }
    let older = try bytes(at: elsewhere)
    try fresh().set("a", [2])
    let identity = try fresh().verify().identityPin
    // A link to another path, which has a record of the older state, makes no difference.
    let (seen, link) = (vault.directory.file("two/seen.vault"), vault.directory.file("two/link.vault"))
    try write(older, to: seen)
    try fresh(at: seen).trust(onlyHere: true)
    #expect(symlink(seen, link) == 0)
    let names = try Set(FileManager.default.contentsOfDirectory(atPath: states.path))
    // No refusal and no look at a backup makes the path known.
    for _ in 0..<2 {
      let error = #expect(throws: SecretError.self) { try fresh(at: elsewhere).get("a") }
      #expect(error?.code == .rolledBack && error?.reason.contains(elsewhere) == true && error?.remedy != nil)
      for path in [elsewhere, link] { #expect(code { try fresh(at: path).set("a", [9]) } == .rolledBack) }
      _ = try open(at: link) { $0.readsBackups = true }.verify()
      #expect(code { try withPins([identity], at: elsewhere).set("a", [9]) } == .rolledBack)
      let backup = open(at: elsewhere) { $0.readsBackups = true }
      #expect(try backup.get("a") == [isBranch ? 5 : 1] && backup.verify().secretCount == 1)
      #expect(try backup.notices().contains(.behindAnew))
      try backup.close()
      #expect(try bytes(at: elsewhere) == older)
      #expect(try Set(FileManager.default.contentsOfDirectory(atPath: states.path)) == names)
    }
    // The newest state is accepted here, and refuses the older one from then on, also as a backup.
    try write(vault.bytes, to: elsewhere)
    #expect(try fresh(at: elsewhere).get("a") == [2])
    try write(older, to: elsewhere)
    #expect(code { _ = try open(at: elsewhere) { $0.readsBackups = true }.get("a") } == .rolledBack)
  }

  @Test func anOlderStateIsAcceptedInAWorkTreeOrAsACopyOrByAPerson() throws {
    try fresh().set("a", [1])
    let paths = (0..<3).map { "\(elsewhere)\($0)" }
    for path in paths { try write(vault.bytes, to: path) }
    try fresh().set("a", [2])
    #expect(try open(at: paths[0]) { $0.firstUsePolicy = .versioned }.get("a") == [1])
    try fresh(at: paths[1]).trust(onlyHere: true)
    try fresh(at: paths[2]).trust()
    for path in paths { #expect(try fresh(at: path).get("a") == [1]) }
    #expect(try fresh().get("a") == [2])
  }

  @Test func aSuccessorIsAcceptedAtAnotherPathAndItsFormerKeyRefusedAtTheFirst() throws {
    try fresh().set("a", [1])
    try write(vault.bytes, to: elsewhere)
    try fresh(at: elsewhere).rekey()
    #expect(code { _ = try fresh().get("a") } == .unexpectedKey)
    try restore(bytes(at: elsewhere))
    #expect(try fresh().get("a") == [1])
  }

  /// Somebody who knew the former master key has made another successor of it, which was seen first.
  @Test func ofTwoSuccessorsTheOneThatWasSeenFirstHolds() throws {
    try fresh().set("a", [1])
    try write(vault.bytes, to: elsewhere)
    try VaultBackend(path: elsewhere, credentials: [FixedCredential.key], options: .cheap).rekey()
    try fresh(withRecords: false).rekey()
    #expect(try fresh(at: elsewhere).get("a") == [1])
    #expect(code { _ = try fresh().get("a") } == .unexpectedKey)
    try fresh().trust()
    #expect(try fresh().get("a") == [1])
    #expect(code { _ = try fresh(at: elsewhere).get("a") } == .unexpectedKey)
  }

  @Test func aCopyThatCountsOnlyAtItsPathLeavesTheVaultAsItIs() throws {
    try revoke()
    try fresh(at: elsewhere).trust(onlyHere: true)
    try fresh(at: elsewhere).set("a", [7])
    #expect(try fresh(at: elsewhere).get("a") == [7])
    #expect(
      try fresh(at: elsewhere).notices().contains(.countsOnlyHere)
        && !fresh().notices().contains(.countsOnlyHere))
    #expect(try fresh().get("a") == [1])
    // The copy still counts only at its path after a change of its keys and another decision.
    let copy = fresh(at: elsewhere)
    try copy.rekey(opened: copy.openKeySlots(with: [FixedCredential.otherKey]))
    try fresh(at: elsewhere).trust(.versioned)
    #expect(try fresh(at: elsewhere).notices().contains(.countsOnlyHere))
    #expect(try fresh().get("a") == [1])
    // The decision does not hold for another path that leads to the copy.
    let link = vault.directory.file("link")
    #expect(symlink(elsewhere, link) == 0)
    #expect(code { _ = try fresh(at: link).get("a") } == .unexpectedKey)
    // Another vault at the path does not inherit the decision.
    try write(TestVault().bytes, to: elsewhere)
    try fresh(at: elsewhere).trust()
    #expect(try !fresh(at: elsewhere).notices().contains(.countsOnlyHere))
  }

  @Test func aBackupIsTheVaultUntilTheLaterKeyIsUsedAgain() throws {
    let before = try revoke()
    let current = try vault.bytes
    try restore(before)
    #expect(code { _ = try fresh().get("a") } == .unexpectedKey)
    try fresh().trust()
    #expect(try fresh().get("a") == [1] && fresh(at: elsewhere).get("a") == [1])
    // The later vault proves that its key follows from the key of the backup.
    try write(current, to: elsewhere)
    #expect(try fresh(at: elsewhere).get("a") == [1])
    #expect(code { _ = try fresh().get("a") } == .unexpectedKey)
  }

  /// The path at the end of the record stays that at which the key was changed.
  @Test func theRecordOfAVaultHasItsNewestState() throws {
    try revoke()
    let record = states.file(
      KnownVaultFile.Subject.vault(try VaultBackend(path: vault.path, credentials: []).description().id)
        .fileName)
    let older = try vault.bytes
    for change in 0..<2 {
      if change > 0 { try fresh().set("a", [2]) } else { try fresh().compact() }
      let newest = try fresh().read { $0.state.checkpoint }
      // An older copy at another path lowers nothing.
      try write(older, to: "\(elsewhere)\(change)")
      _ = try open(at: "\(elsewhere)\(change)") { $0.firstUsePolicy = .versioned }.get("a")
      let found = try bytes(at: record)
      let slots = [found[..<496], found[512..<1008]].map { try? KnownVaultRecord.parse(Array($0)).0.checkpoint }
      #expect(slots.contains(newest), "\(change)")
      #expect(found.suffix(vault.path.utf8.count).elementsEqual(vault.path.utf8))
    }
  }

  @Test func aBackupIsReadWithoutARecord() throws {
    let before = try revoke()
    var options = recording
    (options.isBackup, options.pins) = (true, [try fresh().pin()])
    let identity = try VaultIdentity.generate(isPostQuantum: false)
    let recipient = try #require(identity.recipient)
    let sources = [FixedCredential.key, FixedCredential(kind: .identity(identity))]
    for source in sources {
      let names = try FileManager.default.contentsOfDirectory(atPath: states.path)
      let backup = VaultBackend(path: elsewhere, credentials: [source], options: options)
      #expect(try backup.get("a") == [1])
      #expect(try Set(FileManager.default.contentsOfDirectory(atPath: states.path)) == Set(names))
      if source.credential.kind == .key {
        #expect(try bytes(at: elsewhere) == before)
        try VaultBackend(path: elsewhere, credentials: [source], options: .cheap).addKeySlots(for: [recipient]
        )
      }
    }
  }

  // MARK: Locked records

  @Test func aChangeOfTheMasterKeyWaitsForItsRecords() throws {
    try fresh().set("a", [1])
    let slot = try fresh().addKeySlot(FixedCredential.otherKey.credential)
    let id = try VaultBackend(path: vault.path, credentials: []).description().id
    let before = try vault.bytes
    for subject in [KnownVaultFile.Subject.path(vault.path), .vault(id)] {
      let file = Glibc.open(states.file(subject.fileName), O_RDONLY | O_CLOEXEC)
      defer { close(file) }
      try #require(flock(file, LOCK_EX) == 0)
      var options = recording
      options.lockTimeout = .milliseconds(50)
      let backend = vault.open(options: options)
      let opened = try backend.openKeySlots(with: [FixedCredential.otherKey])
      #expect(code { try backend.rekey(opened: opened) } == .timedOut)
      #expect(code { try backend.removeKeySlots(ids: [slot.id], opened: opened) } == .timedOut)
      #expect(
        code {
          try backend.replaceKeySlot(
            id: slot.id, with: .passphrase(SecretBytes("new")), opened: opened)
        } == .timedOut)
      #expect(try vault.bytes == before)
      // A change that keeps the master key needs no lock of a record.
      try backend.compact()
      try restore(before)
      try fresh().trust()
    }
    try fresh().removeKeySlots(ids: [slot.id])
  }

  /// The content that a record has once it is locked decides, not the content that was read before.
  @Test func aChangeOfTheMasterKeyIsRefusedIfAnotherKeyIsRecordedByThen() throws {
    try fresh().set("a", [1])
    try write(vault.bytes, to: elsewhere)
    let backend = fresh()
    let opened = try backend.openKeySlots()
    try fresh(at: elsewhere).rekey()
    let before = try vault.bytes
    #expect(code { try backend.rekey(opened: opened) } == .unexpectedKey)
    #expect(try vault.bytes == before)
  }

  // MARK: Kept master keys

  @Test func aKeptMasterKeyDoesNotMakeAPathKnown() throws {
    try fresh().set("a", [1])
    let kept = try fresh().withMasterKey { _, master in master }
    func open(_ path: String, pins: [String] = [], withRecords: Bool = true) -> VaultBackend {
      var options = withRecords ? recording : .cheap
      options.pins = pins
      let source = VaultCredentialSource("a copy") { _ throws(SecretError) in
        .masterKey(kept)
      }
      return VaultBackend(path: path, credentials: [source], options: options)
    }
    try write(vault.bytes, to: elsewhere)
    #expect(try open(vault.path).get("a") == [1])
    #expect(code { _ = try open(elsewhere).get("a") } == .untrusted)
    #expect(code { try open(elsewhere).set("a", [2]) } == .untrusted)
    #expect(try open(elsewhere, withRecords: false).get("a") == [1])
    #expect(try open(elsewhere, pins: [fresh().pin()]).get("a") == [1])
    #expect(try open(elsewhere).get("a") == [1])
  }

  // MARK: Copies

  @Test func aCopyIsNamedWhileTheOtherVaultIsThere() throws {
    try fresh().set("a", [1])
    func copy(_ path: String) throws -> String? {
      let backend = fresh(at: path)
      try backend.unlock()
      return try backend.otherCopy()
    }
    #expect(try copy(vault.path) == nil)
    try write(vault.bytes, to: elsewhere)
    #expect(try copy(elsewhere) == vault.path && copy(vault.path) == nil)
    let link = vault.directory.file("link")
    #expect(Glibc.link(vault.path, link) == 0)
    #expect(try copy(link) == nil)
    #expect(rename(vault.path, vault.directory.file("moved")) == 0 && unlink(link) == 0)
    #expect(try copy(elsewhere) == nil)
    try write(TestVault().bytes, to: vault.path)
    #expect(try copy(elsewhere) == nil)
  }
}
