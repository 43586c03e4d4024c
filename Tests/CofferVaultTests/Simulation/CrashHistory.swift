import CofferCore
import CofferSimulation
import CofferVault
import FoundationEssentials
import Glibc

/// One random life of a vault on a simulated disk, with power losses in it, held against a model.
///
/// After each power loss the vault must open without a false alarm, verify, and hold exactly what was
/// acknowledged; of the change that was under way, all or nothing.
struct CrashHistory {
  struct Failure: Error, CustomStringConvertible {
    let seed: UInt64
    let step: String
    let what: String
    var description: String { "seed \(seed), after \(step): \(what)" }
  }

  /// What a vault holds: its secrets, and which credentials open it beside the first.
  private struct Content: Equatable {
    var secrets: [String: [UInt8]] = [:]
    var extraSlots: Set<ExtraSlot> = []
  }
  private enum ExtraSlot: CaseIterable {
    case key
    case passphrase

    var credential: FixedCredential {
      switch self {
      case .key: .otherKey
      case .passphrase: FixedCredential(kind: .passphrase("pass"))
      }
    }
    func isKind(of slot: VaultKeySlot) -> Bool {
      if case .passphrase = slot.kind { self == .passphrase } else { self == .key }
    }
  }

  private let seed: UInt64
  private var random: SeededRandom
  private var disk: SimulatedDisk
  private var environment: VaultEnvironment
  private var writers: [VaultBackend] = []
  /// `nil`: there is no vault yet.
  private var content: Content?
  /// What a power loss may bring back, beside the content: a change that was seen but never acknowledged.
  private var alternatives: [Content?] = []
  private var lastError: String?

  private static let path = "vault"
  private static let names = (0..<6).map { "name \($0)" }

  init(seed: UInt64, omission: SimulatedDisk.Omission = .none, hasFixedNonces: Bool = false) {
    self.seed = seed
    random = SeededRandom(seed: seed)
    disk = SimulatedDisk(omission: omission)
    environment = VaultEnvironment(
      fileSystem: disk, randomness: SeededRandomness(seed: seed ^ 0xA5A5, hasFixedNonces: hasFixedNonces),
      now: { Date(timeIntervalSince1970: 1_000_000_000) }, user: 0, monotonicSeconds: { 0 }, sleep: { _ in })
    // A few changes are enough for the next to write the file anew.
    environment.leastTail = 1000
  }

  private mutating func pick(_ range: Range<Int>) -> Int { Int.random(in: range, using: &random) }

  private var sources: [any VaultCredentialSource] {
    // Each further slot may or may not have been there when the power failed.
    [FixedCredential.key] + ExtraSlot.allCases.map(\.credential)
  }

  private static var options: VaultOptions {
    var options = VaultOptions.cheap
    options.passphraseMemory = 8192
    options.lockTimeout = 0
    return options
  }

  private func open() -> VaultBackend {
    var options = Self.options
    // Half of the histories have a watermark, which must never call a vault old that has only lost power.
    if seed % 2 == 0 { options.watermarkDirectory = "state" }
    return VaultBackend(path: Self.path, credentials: sources, options: options, environment: environment)
  }

  /// Lives through `steps` changes, about a third of which meet a power loss. Gives how many losses there were.
  mutating func run(steps: Int) throws -> Int {
    var losses = 0
    for _ in 0..<steps {
      let losesPower = pick(0..<3) == 0
      if losesPower {
        // A change makes between 1 and about 40 calls.
        disk.failPower(atCall: disk.calls + 1 + pick(0..<(pick(0..<4) == 0 ? 40 : 16)))
      }
      let step = try step()
      guard losesPower else {
        if let error = lastError {
          throw Failure(seed: seed, step: step.name, what: "it failed with the power on: \(error)")
        }
        continue
      }
      losses += 1
      if pick(0..<3) == 0 {
        try goOnAfterKill(possible: step.possible, step.name)
      } else {
        try check(possible: step.possible + alternatives, step.name)
      }
    }
    try check(possible: [content] + alternatives, "the end")
    return losses
  }

  /// The process is killed, and the system is not. The next one sees what is in the system's cache; until it
  /// has made a change of its own, a power loss may still undo what was not acknowledged.
  private mutating func goOnAfterKill(possible: [Content?], _ step: String) throws {
    disk.killProcess()
    writers = []
    let found = try readOrFail(step)
    guard possible.contains(found) else { throw mismatch(found, possible, "a kill during \(step)") }
    content = found
    alternatives += possible
  }

  private struct Step {
    let name: String
    /// What the vault may hold if the power fails from now on.
    let possible: [Content?]
  }

  private mutating func step() throws -> Step {
    guard let before = content else {
      let environment = environment
      let created = attempt {
        try VaultBackend.create(
          at: Self.path, credential: FixedCredential.key.credential, label: "", options: Self.options,
          environment: environment)
      }
      if created {
        content = Content()
        alternatives = []
      }
      return Step(name: "create", possible: created ? [content] : [nil, Content()])
    }
    if writers.isEmpty || pick(0..<8) == 0 { writers.append(open()) }
    let writer = writers[pick(0..<writers.count)]
    var after = before
    let name: String
    let succeeded: Bool
    var commits = true
    switch pick(0..<16) {
    case 0...6:
      name = "store"
      let key = Self.names[pick(0..<Self.names.count)]
      let value = [UInt8](repeating: UInt8(pick(0..<256)), count: pick(0..<200))
      after.secrets[key] = value
      succeeded = attempt { try writer.set(key, value) }
    case 7, 8:
      name = "remove"
      let key = Self.names[pick(0..<Self.names.count)]
      after.secrets[key] = nil
      commits = before.secrets[key] != nil
      succeeded = attempt { try writer.remove(identifier(key)) }
    case 9, 10:
      name = "transaction"
      let value = [UInt8](repeating: UInt8(pick(0..<256)), count: 40)
      let keys = Self.names.filter { _ in pick(0..<2) == 0 }
      for key in keys { after.secrets[key] = value }
      commits = !keys.isEmpty
      succeeded = attempt {
        try writer.transaction { transaction throws(SecretError) in
          for key in keys {
            try transaction.store(
              SecretBytes(copying: value), for: SecretIdentifier(service: "test", account: key), metadata: nil
            )
          }
        }
      }
    case 11, 12, 13:
      name = "compact"
      succeeded = attempt { try writer.compact() }
    case 14:
      let slot = ExtraSlot.allCases[pick(0..<2)]
      if !before.extraSlots.contains(slot) {
        name = "add a slot"
        after.extraSlots.insert(slot)
        succeeded = attempt { try writer.addKeySlot(slot.credential.credential) }
      } else if pick(0..<2) == 0 {
        name = "remove a slot"
        after.extraSlots.remove(slot)
        let environment = environment
        succeeded = attempt {
          let slots = try VaultBackend.slots(Self.path, environment)
          // The first slot is the one of the first key.
          guard let doomed = slots.dropFirst().first(where: slot.isKind) else {
            throw SecretError(.io, "The slot is not there.")
          }
          try writer.removeKeySlot(id: doomed.id)
        }
      } else {
        name = "rekey"
        succeeded = attempt { try writer.rekey() }
      }
    default:
      name = "read"
      commits = false
      let key = Self.names[pick(0..<Self.names.count)]
      var found: [UInt8]?
      succeeded = attempt { found = try writer.get(key) }
      if succeeded, found != before.secrets[key] {
        throw Failure(seed: seed, step: name, what: "\(key) is not what was stored last")
      }
    }
    if succeeded {
      content = after
      // Acknowledged is acknowledged, with all that it was made upon.
      if commits { alternatives = [] }
    }
    return Step(name: name, possible: succeeded ? [after] : [before, after])
  }

  /// Whether the change was acknowledged. With the power on nothing may fail.
  private mutating func attempt(_ body: () throws -> Void) -> Bool {
    lastError = nil
    do {
      try body()
      return true
    } catch {
      lastError = "\(error)"
      return false
    }
  }

  private func readOrFail(_ step: String) throws -> Content? {
    do { return try read() } catch {
      throw Failure(seed: seed, step: step, what: "the vault does not open: \(error)")
    }
  }

  private func mismatch(_ found: Content?, _ possible: [Content?], _ step: String) -> Failure {
    let expected = possible.map(Self.describe).joined(separator: " or ")
    return Failure(
      seed: seed, step: step, what: "it holds \(Self.describe(found)), and not \(expected)")
  }

  /// Ends the world, looks at what is left, and goes on with it.
  private mutating func check(possible: [Content?], _ step: String) throws {
    // Up to two further losses, while the first look itself is under way.
    for _ in 0..<(1 + pick(0..<2)) {
      disk = disk.afterPowerLoss(&random)
      environment.fileSystem = disk
      writers = []
      if pick(0..<3) == 0 {
        disk.failPower(atCall: disk.calls + 1 + pick(0..<12))
        let vault = open()
        _ = attempt { _ = try vault.verify() }
      }
      disk.failPower(atCall: nil)
    }
    disk = disk.afterPowerLoss(&random)
    environment.fileSystem = disk
    let found = try readOrFail(step)
    guard possible.contains(found) else { throw mismatch(found, possible, step) }
    content = found
    alternatives = []
  }

  private func read() throws -> Content? {
    let vault = open()
    do throws(SecretError) {
      try vault.unlock()
    } catch {
      if error.code == .vaultNotFound { return nil }
      throw error
    }
    let count = try vault.verify().secretCount
    var found = Content()
    for item in try vault.items(inService: nil) {
      found.secrets[item.identifier.account] = try vault.lookup(item.identifier)?.array()
    }
    guard found.secrets.count == count else { throw SecretError(.tampered, "the count is wrong") }
    let slots = try VaultBackend.slots(Self.path, environment).dropFirst()
    found.extraSlots = Set(ExtraSlot.allCases.filter { slots.contains(where: $0.isKind) })
    return found
  }

  private static func describe(_ content: Content?) -> String {
    guard let content else { return "no vault" }
    let items = content.secrets.sorted { $0.key < $1.key }.map {
      "\($0.key)=\($0.value.first ?? 0)×\($0.value.count)"
    }
    return "[\(items.joined(separator: ", "))] and \(content.extraSlots.count) further slots"
  }
}

extension VaultBackend {
  fileprivate static func slots(_ path: String, _ environment: VaultEnvironment) throws -> [VaultKeySlot] {
    try LockedVault(path: path, environment: environment).description.keySlots
  }
}
