import CofferCore
import CofferTestSupport
import CofferSimulation
import CofferVault

/// The model of a vault's content: its secrets, and the credentials that open it in addition to the first one.
struct CrashContent: Equatable, CustomStringConvertible {
  var secrets: [String: [UInt8]] = [:]
  /// The earlier values of each name, newest first, without the names that have none.
  var earlier: [String: [[UInt8]]] = [:]
  var extraSlots: Set<ExtraSlot> = []
  /// For each name, the earlier value that lost to the present one in a merge. No limit drops it while the present
  /// value stays. A vault shows it like any other earlier value.
  var lost: [String: [UInt8]] = [:]

  /// The limit of the history: small, so that versions are dropped often.
  var versions = 2

  static func limit(_ versions: Int) -> HistoryLimit { HistoryLimit(versions: versions, days: 0) ?? .none }

  /// Reads and verifies a vault.
  init(of vault: VaultBackend) throws {
    let count = try vault.verify().secretCount
    for item in try vault.items(inService: nil) {
      secrets[item.identifier.account] = try vault.lookUp(item.identifier)?.array()
    }
    for name in CrashChange.names {
      let former = try vault.versions(of: identifier(name)).filter { [.earlier, .conflict].contains($0.kind) }
      let values = try former.compactMap {
        try vault.secret(identifier(name), version: $0.number)?.value.array()
      }
      guard values.count == former.count else { throw SecretError(.tampered, "a version is missing") }
      if !values.isEmpty { earlier[name] = values }
    }
    guard secrets.count == count else { throw SecretError(.tampered, "the count is wrong") }
    versions = try vault.historyLimit().versions
    let removed = try vault.removedItems(inService: nil).map(\.identifier.account)
    guard removed == earlier.keys.filter({ secrets[$0] == nil }).sorted() else {
      throw SecretError(.tampered, "the list of removed secrets is wrong")
    }
    let slots = try vault.description().keySlots.dropFirst()
    extraSlots = Set(ExtraSlot.allCases.filter { slots.contains(where: $0.isKind) })
  }

  init(secrets: [String: [UInt8]] = [:], earlier: [String: [[UInt8]]] = [:], lost: [String: [UInt8]] = [:]) {
    (self.secrets, self.earlier, self.lost) = (secrets, earlier, lost)
  }

  /// The part of the content that a vault shows.
  var shown: CrashContent {
    var shown = self
    shown.lost = [:]
    return shown
  }

  /// The content of `merged.vault` of the vectors: the result of a merge by the second implementation.
  static let merged = CrashContent(
    secrets: ["name 0": [3], "name 1": [13], "name 2": [21], "name 4": [40], "name 5": [50]],
    earlier: [
      "name 0": [[1], [2], [0]], "name 1": [[12], [11]], "name 2": [[20]], "name 3": [[30]],
    ],
    lost: ["name 0": [1]])

  enum ExtraSlot: CaseIterable {
    case key
    case passphrase
    case recipient

    static let identity: VaultIdentity = {
      do { return try VaultIdentity.generate(isPostQuantum: false) } catch { fatalError("\(error)") }
    }()

    var credential: FixedCredential {
      switch self {
      case .key: .otherKey
      case .passphrase: FixedCredential(kind: .passphrase("pass"))
      case .recipient: FixedCredential(kind: .identity(Self.identity))
      }
    }
    /// The credential or the recipient that the slot is made for.
    func added() throws -> VaultCredential {
      guard self == .recipient else { return credential.credential }
      guard let recipient = Self.identity.recipient else {
        throw SecretError(.io, "There is no recipient.")
      }
      return .recipient(recipient)
    }
    func isKind(of slot: VaultKeySlot) -> Bool {
      switch slot.kind {
      case .key: self == .key
      case .passphrase: self == .passphrase
      case .identity: self == .recipient
      default: false
      }
    }
  }

  var description: String {
    let items = secrets.sorted { $0.key < $1.key }.map {
      "\($0.key)=\($0.value.first ?? 0)×\($0.value.count)"
    }
    let versions = earlier.sorted { $0.key < $1.key }.map {
      "\($0.key): \($0.value.map { "\($0.first ?? 0)×\($0.count)" })"
    }
    return "[\(items.joined(separator: ", "))], before \(versions) of \(self.versions), "
      + "and \(extraSlots.count) further slots"
  }
}

/// One random call of a vault, and its effect on the model.
struct CrashChange {
  let name: String
  var applied: (CrashContent) -> CrashContent = { $0 }
  /// Whether the call writes to a vault with this content.
  var commits: (CrashContent) -> Bool = { _ in true }
  /// Whether the call read a value that one of these contents has.
  var isRight: (_ of: [CrashContent]) -> Bool = { _ in true }
  /// Whether the call reads the vault first and then changes it, so that another writer's change may come in between.
  var hasSteps = false
  let run: (VaultBackend) throws -> Void

  static let names = (0..<6).map { "name \($0)" }

  /// Makes a change of secrets, a compaction or a read.
  static func ofSecrets(_ random: inout SeededRandom) -> CrashChange {
    func pick(_ range: Range<Int>) -> Int { Int.random(in: range, using: &random) }
    let key = names[pick(0..<names.count)]
    switch pick(0..<20) {
    case 0...6:
      let value = [UInt8](repeating: UInt8(pick(0..<256)), count: pick(0..<200))
      return CrashChange(
        name: "store", applied: { $0.setting([key], to: value) }, run: { try $0.set(key, value) })
    case 7, 8:
      return CrashChange(
        name: "remove", applied: { $0.setting([key], to: nil) }, commits: { $0.secrets[key] != nil },
        run: { try $0.remove(identifier(key)) })
    case 9, 10:
      let value = [UInt8](repeating: UInt8(pick(0..<256)), count: 40)
      let keys = names.filter { _ in pick(0..<2) == 0 }
      return CrashChange(
        name: "transaction", applied: { $0.setting(keys, to: value) }, commits: { _ in !keys.isEmpty },
        run: { vault in
          try vault.withTransaction { transaction throws(SecretError) in
            for key in keys {
              try transaction.store(
                SecretBytes(value), for: SecretIdentifier(service: "tests", account: key),
                metadata: nil)
            }
          }
        })
    case 11:
      return CrashChange(
        name: "purge", applied: { $0.setting([key], to: nil).purging(key) },
        commits: { $0.secrets[key] != nil || $0.earlier[key] != nil },
        run: { try $0.erase(identifier(key)) })
    case 12:
      let value = [UInt8](repeating: UInt8(pick(0..<256)), count: 30)
      return CrashChange(
        name: "store without history", applied: { $0.setting([key], to: value).purging(key) },
        run: {
          try $0.storeWithoutHistory(SecretBytes(value), for: identifier(key), metadata: nil)
        })
    case 13:
      let versions = pick(0..<4)
      return CrashChange(
        name: "limit the history", applied: { $0.limited(to: versions) },
        run: { try $0.setHistoryLimit(CrashContent.limit(versions)) })
    case 14, 15:
      return CrashChange(
        name: "restore",
        applied: { before in
          guard let value = before.earlier[key]?.first else { return before }
          return before.setting([key], to: value)
        },
        commits: { $0.earlier[key] != nil }, hasSteps: true,
        run: { try $0.restore(identifier(key)) })
    case 16, 17, 18:
      return CrashChange(name: "compact", run: { try $0.compact() })
    default:
      let found = Found()
      return CrashChange(
        name: "read", commits: { _ in false },
        isRight: { contents in !found.isKnown || contents.contains { $0.secrets[key] == found.value } },
        run: { vault in
          found.value = try vault.get(key)
          found.isKnown = true
        })
    }
  }

  /// Makes a change of a copy of the vault with this content, and the name of the secret that it is about.
  static func ofCopy(
    _ content: CrashContent, _ random: inout SeededRandom
  ) -> (change: CrashChange, name: String?) {
    let (key, slot) = (names[Int.random(in: 0..<names.count, using: &random)], CrashContent.ExtraSlot.key)
    switch Int.random(in: 0..<5, using: &random) {
    case 0 where content.secrets[key] != nil:
      let change = CrashChange(name: "a remove", applied: { $0.setting([key], to: nil) }) {
        try $0.remove(identifier(key))
      }
      return (change, key)
    case 1:
      let change = CrashChange(name: "a purge", applied: { $0.setting([key], to: nil).purging(key) }) {
        try $0.erase(identifier(key))
      }
      return (change, key)
    case 2 where !content.extraSlots.contains(slot):
      let change = CrashChange(name: "a new slot", applied: { $0.setting(slot, isPresent: true) }) {
        try $0.addKeySlot(slot.added())
      }
      return (change, nil)
    default:
      let value = [UInt8](repeating: UInt8.random(in: 0...255, using: &random), count: 50)
      let change = CrashChange(name: "a store", applied: { $0.setting([key], to: value) }) {
        try $0.set(key, value)
      }
      return (change, key)
    }
  }

  /// Makes a change of the key slots or of the master key.
  static func ofSlots(
    _ content: CrashContent, _ random: inout SeededRandom
  ) -> CrashChange {
    let slot = CrashContent.ExtraSlot.allCases[Int.random(in: 0..<3, using: &random)]
    if !content.extraSlots.contains(slot) {
      return CrashChange(
        name: "add a slot", applied: { $0.setting(slot, isPresent: true) },
        run: { try $0.addKeySlot(slot.added()) })
    }
    if Bool.random(using: &random) { return CrashChange(name: "rekey", run: { try $0.rekey() }) }
    return CrashChange(
      name: "remove a slot", applied: { $0.setting(slot, isPresent: false) },
      run: { vault in
        // The first slot belongs to the first key.
        guard let doomed = try vault.description().keySlots.dropFirst().first(where: slot.isKind) else {
          throw SecretError(.io, "The slot is not there.")
        }
        try vault.removeKeySlots(ids: [doomed.id])
      })
  }

  /// What a read returned. Unless it is known, the read did not end, and then no result is wrong.
  private final class Found {
    var isKnown = false
    var value: [UInt8]?
  }
}

extension CrashContent {
  func setting(_ keys: [String], to value: [UInt8]?) -> CrashContent {
    var after = self
    for key in keys {
      if let old = secrets[key] {
        after.earlier[key] = [old] + (earlier[key] ?? [])
      }
      after.secrets[key] = value
      after.lost[key] = nil
    }
    return after.limited(to: versions)
  }

  fileprivate func limited(to versions: Int) -> CrashContent {
    var after = self
    after.versions = versions
    for (key, values) in earlier {
      // A value that lost in a merge does not count towards the limit.
      var count = versions
      let kept = values.filter { value in
        if value == lost[key] { return true }
        count -= 1
        return count >= 0
      }
      after.earlier[key] = kept.isEmpty ? nil : kept
    }
    return after
  }

  fileprivate func purging(_ key: String) -> CrashContent {
    var after = self
    (after.earlier[key], after.lost[key]) = (nil, nil)
    return after
  }

  fileprivate func setting(_ slot: ExtraSlot, isPresent: Bool) -> CrashContent {
    var after = self
    after.extraSlots = isPresent ? extraSlots.union([slot]) : extraSlots.subtracting([slot])
    return after
  }
}
