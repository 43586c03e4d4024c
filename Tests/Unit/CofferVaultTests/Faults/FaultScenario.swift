import CofferCore
import CofferTestSupport
import CofferSimulation
import CofferVault
import FoundationEssentials
import Glibc

/// A vault with a base, a tail and two key slots, one operation on it, and one fault during the operation.
struct FaultScenario: CustomStringConvertible {
  enum Operation: String, CaseIterable, Sendable {
    case create, store, overwrite, remove, transaction
    /// A store that rewrites the file because the tail is long.
    case storeWithRewrite
    case compact, addKeySlot, replaceKeySlot, removeKeySlot, rekey
    case verify, lookup, items
  }

  typealias Content = [String: [UInt8]]

  static let path = "vault"
  static let startContent: Content = [
    "base 1": [1, 2, 3], "base 2": [UInt8](repeating: 2, count: 3000), "changed": [9], "tail": [4],
  ]

  let operation: Operation
  let disk: SimulatedDisk
  let vault: VaultBackend
  private(set) var fault = SimulatedDisk.Fault(call: 0, kind: .failure(0))
  /// The error of the operation.
  private(set) var error: SecretError?
  /// The calls that the fault affected.
  private(set) var faulted: [SimulatedDisk.Operation] = []
  private(set) var inodeAfterNextChange: UInt64?
  private let environment: VaultEnvironment
  private let hasRecords: Bool

  var description: String { "\(operation) with \(fault) at \(faulted)" }

  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  /// Returns a disk with the vault for the operation. `hasRecords`: it is recorded as a known vault.
  static func start(for operation: Operation, hasRecords: Bool = false) throws -> SimulatedDisk {
    let disk = SimulatedDisk()
    if operation == .create { return disk }
    let environment = environment(disk)
    try VaultBackend.create(
      at: path, credential: FixedCredential.key.credential, label: "", options: options(hasRecords),
      environment: environment)
    let vault = open(environment, hasRecords)
    for name in ["base 1", "base 2", "changed", "gone"] { try vault.set(name, startContent[name] ?? [0]) }
    try vault.addKeySlot(FixedCredential.otherKey.credential)
    // A tail that is longer than the base.
    if operation == .storeWithRewrite { try vault.set("tail", [UInt8](repeating: 0, count: 6000)) }
    try vault.set("tail", startContent["tail"] ?? [])
    try vault.remove(identifier("gone"))
    return disk
  }

  /// Returns the number of calls that the operation makes without a fault.
  static func callCount(
    of operation: Operation, from start: SimulatedDisk, isWarm: Bool, hasRecords: Bool = false
  ) throws -> Int {
    let scenario = FaultScenario(operation, from: start, isWarm: isWarm, hasRecords: hasRecords)
    let (before, inode) = (scenario.disk.calls, scenario.disk.inode(of: path))
    try scenario.perform()
    guard operation != .storeWithRewrite || scenario.disk.inode(of: path) != inode else {
      throw Failure(description: "the file was not rewritten")
    }
    return scenario.disk.calls - before
  }

  init(
    _ operation: Operation, from start: SimulatedDisk, isWarm: Bool, hasRecords: Bool = false,
    compactionThreshold: Int? = nil
  ) {
    self.operation = operation
    self.hasRecords = hasRecords
    disk = start.duplicate()
    var environment = Self.environment(disk)
    if let compactionThreshold { environment.compactionThreshold = compactionThreshold }
    if operation == .storeWithRewrite { environment.compactionThreshold = 0 }
    self.environment = environment
    vault = Self.open(environment, hasRecords)
    if isWarm, operation != .create { _ = try? vault.get("tail") }
  }

  private static func environment(_ disk: SimulatedDisk) -> VaultEnvironment {
    VaultEnvironment(
      fileSystem: disk, now: { Date(timeIntervalSince1970: 1_000_000_000) }, user: 0,
      uptime: { .zero }, sleep: { _ in })
  }

  private static func options(_ hasRecords: Bool) -> VaultOptions {
    var options = VaultOptions.cheap
    options.lockTimeout = .seconds(0)
    if hasRecords { options.knownVaultsDirectory = "known" }
    return options
  }

  private static func open(_ environment: VaultEnvironment, _ hasRecords: Bool) -> VaultBackend {
    VaultBackend(
      path: path, credentials: [FixedCredential.key, FixedCredential.otherKey],
      options: options(hasRecords), environment: environment)
  }

  /// Opens the vault like another process.
  func open() -> VaultBackend { Self.open(environment, hasRecords) }

  private func create() throws {
    try VaultBackend.create(
      at: Self.path, credential: FixedCredential.key.credential, label: "",
      options: Self.options(hasRecords), environment: environment)
  }

  // MARK: Running

  private var after: Content {
    var content = Self.startContent
    switch operation {
    case .create: return [:]
    case .store, .storeWithRewrite: content["new"] = [7, 7]
    case .overwrite: content["changed"] = [8, 8]
    case .remove: content["changed"] = nil
    case .transaction:
      content["new"] = [7, 7]
      content["changed"] = nil
      content["tail"] = [5]
    default: break
    }
    return content
  }

  private func perform() throws {
    switch operation {
    case .create: try create()
    case .store, .storeWithRewrite: try vault.set("new", [7, 7])
    case .overwrite: try vault.set("changed", [8, 8])
    case .remove:
      guard try vault.remove(identifier("changed")) else { throw Failure(description: "nothing was removed") }
    case .transaction:
      try vault.withTransaction { transaction throws(SecretError) in
        func name(_ account: String) throws(SecretError) -> SecretIdentifier {
          try SecretIdentifier(service: "tests", account: account)
        }
        try transaction.store(SecretBytes([7, 7] as [UInt8]), for: name("new"))
        _ = try transaction.remove(name("changed"))
        try transaction.store(SecretBytes([5] as [UInt8]), for: name("tail"))
      }
    case .compact: try vault.compact()
    case .addKeySlot: try vault.addKeySlot(FixedCredential(kind: .passphrase("p")).credential)
    case .replaceKeySlot:
      try vault.replaceKeySlot(id: slots()[1].id, with: FixedCredential(kind: .passphrase("p")).credential)
    case .removeKeySlot: try vault.removeKeySlots(ids: [slots()[1].id])
    case .rekey: try vault.rekey()
    case .verify:
      guard try vault.verify().secretCount == Self.startContent.count else {
        throw Failure(description: "verify reports a wrong number")
      }
    case .lookup:
      for (name, value) in Self.startContent where try vault.get(name) != value {
        throw Failure(description: "\(name) is wrong or missing")
      }
      guard try vault.get("gone") == nil else { throw Failure(description: "a removed secret is back") }
    case .items:
      guard try vault.items(inService: nil).map(\.identifier.account) == Self.startContent.keys.sorted()
      else { throw Failure(description: "the list is wrong") }
    }
  }

  private func slots() throws -> [VaultKeySlot] {
    try VaultFile(LocalMedium(path: Self.path, environment: environment).open()).description.keySlots
  }

  /// Runs the operation with the fault at its call number `fault.call`, and then checks the vault.
  mutating func run(with fault: SimulatedDisk.Fault) throws {
    self.fault = fault
    var shifted = fault
    shifted.call += disk.calls
    disk.inject(shifted)
    do { try perform() } catch let error as SecretError { self.error = error }
    faulted = disk.faulted
    disk.inject(nil)
    do { try checkWhatIsLeft() } catch { throw Failure(description: "\(self): \(error)") }
  }

  /// The codes that the error may have.
  var allowedCodes: [SecretError.Code] {
    // A record that cannot be read is not passed over.
    (hasRecords ? [.unverifiable] : []) + codesOfTheVault
  }

  private var codesOfTheVault: [SecretError.Code] {
    guard case .failure(let number) = fault.kind else { return [] }
    switch number {
    case EACCES, EPERM, EROFS: return [.denied, .io]
    case EBUSY: return faulted == [.rename] ? [.denied] : [.io, .denied]
    default: return [.io]
    }
  }

  private mutating func checkWhatIsLeft() throws {
    if operation == .create { return try checkCreation() }
    // Another process sees all or nothing of the change and can continue, because no lock was left behind.
    var content = try Self.content(of: open())
    guard content == after || (error != nil && content == Self.startContent) else {
      throw Failure(description: "it holds \(content)")
    }
    // The same process can continue too. Its next change survives a power loss.
    try vault.set("next", [1])
    inodeAfterNextChange = disk.inode(of: Self.path)
    content["next"] = [1]
    try expect(content, vault, "the same backend")
    if error != nil { try survivesPowerLoss(content) }
    try open().set("another", [2])
    content["another"] = [2]
    try expect(content, vault, "the same backend, after another's change")
    try checkNothingIsLeftBehind(content)
  }

  private func checkCreation() throws {
    if error == nil {
      // An acknowledged vault is durable, although its record may be missing.
      try survivesPowerLoss([:])
    } else if !disk.names.contains(Self.path) {
      // Nothing was created, and creating it again works.
      try create()
    }
    try expect([:], open(), "the new vault")
    try open().set("next", [1])
    try checkNothingIsLeftBehind(["next": [1]])
  }

  /// Checks that a rewrite removes temporary files that could not be removed before, and that making the records anew
  /// removes theirs.
  private func checkNothingIsLeftBehind(_ content: Content) throws {
    try open().compact()
    if hasRecords { try open().trust() }
    guard disk.names.allSatisfy({ $0 == Self.path || $0.hasPrefix("known/") }) else {
      throw Failure(description: "left behind: \(disk.names)")
    }
    try expect(content, open(), "a compacted vault")
  }

  private func expect(_ content: Content, _ vault: VaultBackend, _ what: String) throws {
    let found = try Self.content(of: vault)
    guard found == content else { throw Failure(description: "\(what) holds \(found)") }
  }

  private func survivesPowerLoss(_ content: Content) throws {
    var random = SeededRandom(seed: UInt64(fault.call))
    for _ in 0..<3 {
      let lost = disk.afterPowerLoss(&random)
      let found: Content
      do { found = try Self.content(of: Self.open(Self.environment(lost), hasRecords)) } catch {
        throw Failure(description: "after a power loss: \(error)")
      }
      guard found == content else { throw Failure(description: "after a power loss it holds \(found)") }
    }
  }

  private static func content(of vault: VaultBackend) throws -> Content {
    let count = try vault.verify().secretCount
    var content: Content = [:]
    for item in try vault.items(inService: nil) {
      content[item.identifier.account] = try vault.lookUp(item.identifier)?.array()
    }
    guard content.count == count else { throw Failure(description: "the count is wrong") }
    return content
  }
}
