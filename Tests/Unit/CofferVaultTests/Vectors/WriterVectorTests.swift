import CofferCore
import CofferTestSupport
import CofferVaultFormat
import Foundation
import Testing

@testable import CofferVault

/// The operations of `Tests/Vectors/writers.json`: what a writer keeps of fields, feature bits and key slots.
@Suite struct WriterVectorTests {
  @Test func everyOperationHasItsResult() throws {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    let url = Vector.directory.appending(path: "writers.json")
    let content = try decoder.decode(WriterVectors.self, from: Data(contentsOf: url))
    #expect(content.cases.count >= 50)
    let vectors = Dictionary(uniqueKeysWithValues: try Vector.all().map { ($0.name, $0) })
    let directory = try TemporaryDirectory()
    for one in content.cases {
      let comment = "\(one.name) (\(one.comment))"
      do {
        let vector = try one.vector.map { try #require(vectors[$0]) }
        try content.check(one, vector, at: directory.file("vault"), comment)
      } catch {
        Issue.record("\(comment): \(error)")
      }
    }
  }
}

/// The content of `writers.json`.
private struct WriterVectors: Decodable {
  struct Case: Decodable {
    let name, comment: String
    let vector: String?
    let operation: Operation
    let expect: WriterExpectation
  }
  /// One of these.
  struct Operation: Decodable {
    let set, purge: Stored?
    let remove: Removed?
    let move: Moved?
    let rewrite: Rewritten?
    let addSlot, replaceSlot: Slot?
    let rekey: Rekeyed?
  }
  struct Stored: Decodable {
    let account: String
    let value: String?
    let label: String?
    let expires: Int64?
    let attributes: [String: String]?
    let history: String?
  }
  struct Removed: Decodable {
    let account: String
    let history: String?
  }
  struct Moved: Decodable { let from, to: String }
  struct Rewritten: Decodable {
    struct Limit: Decodable { let versions, days: Int }
    let history: Limit?
  }
  struct Slot: Decodable {
    let slot: Int?
    let key, recipient: String?
    let label: String
  }
  struct Rekeyed: Decodable { let without: [Int] }

  let vault: String
  let credentials: [Vector.Credential]
  let time: Int64
  let cases: [Case]

  /// Does the operation on a copy of the vault at `path`, and compares the result.
  func check(_ one: Case, _ vector: Vector?, at path: String, _ comment: String) throws {
    let bytes = try vector?.bytes() ?? [UInt8](Data(contentsOf: Vector.directory.appending(path: vault)))
    func backend() throws -> VaultBackend {
      try? FileManager.default.removeItem(atPath: path)
      try Data(bytes).write(to: URL(filePath: path))
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
      let credentials = vector.map { [$0.credential] } ?? credentials
      return VaultBackend(
        path: path, credentials: credentials.map { VaultCredentialSource($0) }, options: VaultOptions(),
        environment: VaultEnvironment(now: { Timestamp.date(time) }))
    }
    let changed = try backend()
    do throws(SecretError) {
      try operate(one.operation, on: changed)
    } catch {
      #expect(Self.refusals[error.code] == one.expect.outcome, "\(comment): \(error)")
      #expect(try [UInt8](Data(contentsOf: URL(filePath: path))) == bytes, "\(comment)")
      return
    }
    let after = try WriterState(of: changed)
    _ = try changed.verify()
    let before = try WriterState(of: backend())
    #expect(after.identity == before.identity, "\(comment)")
    #expect(try WriterExpectation(from: before, to: after) == one.expect, "\(comment)")
  }

  private static let refusals = Vector.outcomes.merging([.denied: "read-only", .tooLarge: "limit-reached"]) { $1 }

  private func operate(_ operation: Operation, on backend: VaultBackend) throws(SecretError) {
    if let one = operation.set {
      let metadata = SecretMetadata(
        label: one.label, expires: one.expires.map(Timestamp.date), attributes: one.attributes ?? [:])
      try backend.store(
        value(one.value), for: name(one.account), metadata: .replace(metadata), history: history(one.history))
    } else if let one = operation.remove {
      #expect(try backend.remove(name(one.account), history: history(one.history)))
    } else if let one = operation.move {
      try backend.move(name(one.from), to: name(one.to), replacing: true)
    } else if let limit = operation.rewrite?.history {
      try backend.setHistoryLimit(HistoryLimit(versions: limit.versions, days: limit.days) ?? .none)
    } else if operation.rewrite != nil {
      try backend.compact()
    } else if let one = operation.purge {
      let name = try name(one.account)
      try backend.withTransaction { transaction throws(SecretError) in
        // The program that purges and stores keeps the time of creation.
        var metadata = SecretMetadata()
        metadata.created = try transaction.item(name)?.metadata.created
        try transaction.erase(name)
        guard one.value != nil else { return }
        try transaction.store(
          value(one.value), for: name, metadata: .replace(metadata), history: history(one.history))
      }
    } else if let one = operation.addSlot {
      try backend.addKeySlot(credential(one), label: one.label)
    } else if let one = operation.replaceSlot {
      let id = try backend.description().keySlots[one.slot ?? 0].id
      try backend.replaceKeySlot(id: id, with: credential(one), label: one.label)
    } else if let one = operation.rekey {
      let slots = try backend.description().keySlots
      try backend.removeKeySlots(ids: Set(one.without.map { slots[$0].id }))
    } else {
      throw SecretError(.unsupported, "The case has an unknown operation.")
    }
  }

  private func name(_ account: String) throws(SecretError) -> SecretIdentifier {
    try SecretIdentifier(service: "com.example.app", account: account)
  }

  private func value(_ text: String?) -> SecretBytes { SecretBytes(bytes(text)) }

  private func bytes(_ text: String?) -> [UInt8] { (try? Hex.bytes(text ?? "")) ?? [] }

  private func history(_ text: String?) -> History {
    switch text {
    case "none": .none
    case "kept": .kept
    default: .unchanged
    }
  }

  private func credential(_ slot: Slot) -> VaultCredential {
    if slot.key != nil { return .key(value(slot.key)) }
    return .recipient(VaultRecipient(key: bytes(slot.recipient), isPostQuantum: false))
  }
}

/// What is compared of a vault before and after an operation.
private struct WriterState {
  let vault: VaultSnapshot
  let records: [WriterExpectation.Entry]

  init(of backend: VaultBackend) throws(SecretError) {
    (vault, records) = try backend.read { vault throws(SecretError) in
      var records: [WriterExpectation.Entry] = []
      try vault.forEachSecret { entries throws(SecretError) in
        for entry in entries { records.append(try WriterExpectation.Entry(entry, of: vault)) }
      }
      return (vault, records.sorted { ($0.account, $0.sequence) < ($1.account, $1.sequence) })
    }
  }

  /// The vault id and the lookup key, which no operation changes.
  var identity: [UInt8] { encode(vault.file.header.vaultID, vault.base.settings.lookupKey) }
}

/// What a vault is after an operation. What is empty is missing.
private struct WriterExpectation: Decodable, Equatable {
  struct Entry: Decodable, Equatable {
    let account: String
    let sequence: Int
    let time: Int64
    let created: Int64?
    let value: String?
    let fields: [Vector.Pair]?

    init(_ entry: BlockEntry, of vault: VaultSnapshot) throws(SecretError) {
      let (record, name, encoded) = (entry.record, try entry.record.identifier(), try entry.record.encoded())
      (account, sequence, time) = (name.account, record.sequence, record.time)
      created = entry.isRemoval ? nil : encoded.created
      value = entry.isRemoval ? nil : try vault.value(of: entry, for: name).array().hex
      fields = encoded.fields.map(Vector.Pair.init).unlessEmpty
    }

    var name: Name { Name(account: account, sequence: sequence) }
  }
  /// A record that is gone.
  struct Name: Decodable, Hashable {
    let account: String
    let sequence: Int

    init(account: String, sequence: Int) { (self.account, self.sequence) = (account, sequence) }
    init(from decoder: any Decoder) throws {
      var container = try decoder.unkeyedContainer()
      (account, sequence) = (try container.decode(String.self), try container.decode(Int.self))
    }
  }
  struct Slot: Decodable, Equatable {
    struct Description: Decodable, Equatable {
      let type: UInt8
      let label: String
      let created: Int64
      let recipient: String?
      /// The position in the old header of the slot with the same id, whose key wraps another master key.
      let of: Int?
    }
    /// The position in the old header of the slot with the same bytes.
    let kept: Int?
    let description: Description?

    init(_ slot: KeySlot, after old: [KeySlot]) {
      kept = old.firstIndex { $0.bytes == slot.bytes }
      let former = old.firstIndex { $0.isKnown && $0.id == slot.id }
      if kept != nil {
        description = nil
        return
      }
      let recipient = slot.parameters?.recipient.map { Array($0).hex }
      if let former {
        // A salt stays, and with it the commitment. A share does not.
        let isSame = old[former].header == slot.header && old[former].commitment == slot.commitment
        #expect(isSame == (recipient == nil))
      }
      description = Description(
        type: slot.bytes.first ?? 0, label: slot.label, created: slot.created, recipient: recipient, of: former)
    }

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      kept = try? container.decode(Int.self)
      description = kept == nil ? try container.decode(Description.self) : nil
    }

    var isNew: Bool { kept == nil && description?.of == nil }
  }
  struct Root: Decodable, Equatable {
    let floor: Int
    let recent, fields, taken: [Vector.Pair]
    let history: Vector.HistorySetting
    let lineage: Int
    let formerSlots: [Vector.FormerSlot]
    let compatible: UInt32
    let slots: [Slot]
    let leases: Vector.Leases?
    let hasNewMasterKey: Bool
  }

  let outcome: String
  let sequence: Int?
  let records: [Entry]?
  let dropped: [Name]?
  let root: Root?

  init(from old: WriterState, to new: WriterState) throws(SecretError) {
    let before = Dictionary(uniqueKeysWithValues: old.records.map { ($0.name, $0) })
    outcome = "done"
    sequence = new.vault.state.sequence
    records = new.records.filter { before[$0.name] != $0 }.unlessEmpty
    let names = Set(new.records.map(\.name))
    dropped = old.records.map(\.name).filter { !names.contains($0) }.unlessEmpty
    if new.vault.file.header.fileID == old.vault.file.header.fileID {
      #expect(new.vault.state.rootTag == old.vault.state.rootTag)
      root = nil
      return
    }
    let (settings, header) = (new.vault.base.settings, new.vault.file.header)
    let slots = header.slots.map { Slot($0, after: old.vault.file.header.slots) }
    let lineage = try settings.lineage.map { sealed throws(SecretError) in
      try new.vault.keys.openLineage(sealed, vault: header.vaultID).count / 32
    }
    root = Root(
      floor: new.vault.base.recent.floor, recent: try new.vault.recentChanges().map(Vector.Pair.init),
      fields: try new.vault.encodedRootFields().filter { $0.type > 4 }.map(Vector.Pair.init),
      taken: settings.taken.map(Vector.Pair.init), history: Vector.HistorySetting(settings.history),
      lineage: lineage ?? 0, formerSlots: settings.formerSlots.map(Vector.FormerSlot.init),
      compatible: header.compatible, slots: slots.filter { !$0.isNew } + slots.filter(\.isNew),
      leases: Vector.Leases(try new.vault.leases()),
      hasNewMasterKey: new.vault.keys.master.array() != old.vault.keys.master.array())
  }
}
