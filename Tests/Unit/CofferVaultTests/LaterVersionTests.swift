import CofferCore
import CofferSimulation
import CofferTestSupport
@testable import CofferVault
import CofferVaultFormat
import Foundation
import Testing

/// What a later version may have written, and this one does not know: fields and key slots.
@Suite struct LaterVersionTests {
  private func open(_ disk: SimulatedDisk) -> VaultBackend { disk.openVault() }

  private func fields(_ types: [UInt16], _ content: UInt8 = 1) -> [TaggedField] {
    types.map { TaggedField($0, [content]) }
  }

  /// The newest record of the secret `name` ends with the list of its fields.
  private func ends(_ disk: SimulatedDisk, _ name: String = "a", with fields: [TaggedField]) throws -> Bool {
    let record = try open(disk).read { snapshot throws(SecretError) in
      try snapshot.newest(try SecretIdentifier(service: "tests", account: name))?.record
    }
    let list = sized(fields)
    return record?.bytes.suffix(list.count).elementsEqual(list) ?? false
  }

  @Test func unknownFieldsAreCopiedAndTakenOverAsTheirTypesSay() throws {
    let vault = ForgedVault(base: [.init("a", [1], fields: fields([0x1001, 0x2002, 0x4003, 0x6004]))])
    let disk = try vault.disk()
    try open(disk).set("a", [2])
    #expect(try ends(disk, with: fields([0x2002, 0x6004])))
    try open(disk).compact()
    #expect(try ends(disk, with: fields([0x2002])))
    _ = try open(disk).remove(identifier("a"))
    try open(disk).set("a", [3])
    #expect(try ends(disk, with: []))
    let copied = try vault.disk()
    try open(copied).compact()
    #expect(try ends(copied, with: fields([0x1001, 0x2002])))
  }

  @Test func aRewriteLeavesFieldsOfARemovalOutToo() throws {
    let disk = try ForgedVault(
      base: [.init("a", [1]), .init("a", nil, fields: fields([0x1001, 0x4003]))]
    ).disk()
    try open(disk).compact()
    #expect(try ends(disk, with: fields([0x1001])))
  }

  /// Also to a name that has fields of its own.
  @Test(arguments: ["new", "other"]) func aSecretThatGetsAnotherNameTakesItsFieldsAlong(_ name: String) throws {
    let disk = try ForgedVault(
      base: [
        .init("a", [1], fields: fields([0x1001, 0x2002, 0x4003])), .init("other", [2], fields: fields([0x2002], 7)),
      ]
    ).disk()
    let stored = try open(disk).read { vault throws(SecretError) in
      try vault.records(testIdentifier("a"))[0].record.time
    }
    // A name that has versions gets the value with the present time, and a field says since when it is known.
    while Timestamp.milliseconds(.now) == stored {}
    try open(disk).move(identifier("a"), to: identifier(name), replacing: true)
    let since = name == "new" ? [] : [TaggedField(4, encode(stored))]
    #expect(try open(disk).get(name) == [1] && ends(disk, name, with: since + fields([0x1001, 0x2002])))
  }

  @Test func aSecretThatIsStoredWithAPurgeKeepsWhatBelongsToIt() throws {
    let disk = try ForgedVault(base: [.init("a", [1], fields: fields([0x1001, 0x2002]))]).disk()
    try open(disk).withTransaction { transaction throws(SecretError) in
      _ = try transaction.erase(testIdentifier("a"))
      try transaction.store(
        SecretBytes([2] as [UInt8]), for: testIdentifier("a"), metadata: .newValue, history: .unchanged)
    }
    #expect(try ends(disk, with: fields([0x2002])))
  }

  private func testIdentifier(_ name: String) throws(SecretError) -> SecretIdentifier {
    try SecretIdentifier(service: "tests", account: name)
  }

  @Test func aProcessThatRunsReadsPastARecordOfALaterVersion() throws {
    let vault = ForgedVault(base: [.init("a", [1])], tail: [.init("b", [2], fields: fields([0x8000]))])
    let files = try vault.generations()
    let disk = try vault.disk()
    disk.overwrite("vault", with: files[0])
    let running = open(disk)
    #expect(try running.get("a") == [1])
    disk.overwrite("vault", with: files[1])
    #expect(try running.get("a") == [1])
    #expect(
      thrown { () throws(SecretError) in
        _ = try running.item(SecretIdentifier(service: "tests", account: "b"))
      }?
      .code == .unsupportedVersion)
  }

  /// The id of a slot of an unknown kind is not known, and stands for none.
  @Test func aRemovedSlotIsListedWhateverItsIdIs() throws {
    var vault = ForgedVault(base: [.init("a", [1])])
    let header = KeySlot.header(id: .zero, parameters: .key(salt: zeros(16)), created: 0, label: "")
    let removed = try KeySlot(header: header, commitment: zeros(32), wrappedKey: zeros(72))
    vault.slots = [try ForgedVault.unknownSlot(50), removed]
    let disk = try vault.disk()
    try open(disk).replaceKeySlot(id: removed.id.hex, with: FixedCredential.otherKey.credential)
    #expect(try open(disk).formerKeySlots().map(\.slot.id) == [removed.id.hex])
  }
}
