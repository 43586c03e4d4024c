import CofferSystem
import CofferVaultFormat
import CofferCore
import CofferTestSupport
import CofferSimulation
import CofferVault
import FoundationEssentials

/// The files of a vault after each of its changes, and the check of any file made from them.
struct TamperedVault: Sendable {
  typealias Content = [String: [UInt8]]

  /// The file after one change, and its content.
  struct Generation: Sendable {
    let bytes: [UInt8]
    let pin: String
    let content: Content
  }

  enum Shape: CaseIterable, Sendable {
    case tailOnly, baseOnly, baseAndTail
    /// Rewritten twice with changes in between.
    case twoGenerations
    /// 30 secrets with long labels, in three blocks.
    case manyBlocks
  }

  enum Outcome: Equatable, CustomStringConvertible {
    /// The file verifies as the state of this pin and has exactly the secrets of that state.
    case state(String, isRecovered: Bool)
    case refused(SecretError.Code)

    var description: String {
      switch self {
      case .state(let pin, let isRecovered): "\(pin)\(isRecovered ? ", recovered" : "")"
      case .refused(let code): "\(code)"
      }
    }
  }

  struct Wrong: Error, CustomStringConvertible { let description: String }

  let generations: [Generation]
  var current: Generation { generations[generations.count - 1] }
  var previous: Generation { generations[generations.count - 2] }

  /// The outcomes that the specification allows for a changed file.
  static let refusals: Set<SecretError.Code> = [
    .tampered, .notAVault, .unsupportedVersion, .wrongKey, .costLimitExceeded,
  ]

  init(_ shape: Shape) throws {
    let disk = SimulatedDisk()
    let environment = Self.environment(disk)
    try VaultBackend.create(
      at: "vault", credential: FixedCredential.key.credential, label: "ci", options: .cheap,
      environment: environment)
    let vault = Self.open(environment)
    var generations: [Generation] = []
    var content: Content = [:]
    func record() throws {
      generations.append(
        Generation(
          bytes: disk.content(of: "vault") ?? [], pin: try vault.verify().pin,
          content: content))
    }
    func set(_ name: String, _ value: [UInt8], label: String? = nil) throws {
      try vault.store(
        SecretBytes(value), for: identifier(name), metadata: SecretMetadata(label: label))
      content[name] = value
      try record()
    }
    func remove(_ name: String) throws {
      try vault.remove(identifier(name))
      content[name] = nil
      try record()
    }
    func compact() throws {
      try vault.compact()
      try record()
    }
    try record()
    switch shape {
    case .tailOnly:
      try set("a", [1])
      try set("b", [2, 2])
      try set("a", [3])
      try remove("b")
      try set("c", [4])
    case .baseOnly:
      for name in ["a", "b", "c"] { try set(name, Array(name.utf8)) }
      try compact()
    case .baseAndTail:
      for name in ["a", "b", "c"] { try set(name, Array(name.utf8)) }
      try compact()
      try set("a", [5])
      try remove("b")
      try set("d", [6])
    case .twoGenerations:
      try set("a", [1])
      try set("b", [2])
      try compact()
      try set("a", [3])
      try set("c", [4])
      try compact()
      try set("a", [5])
      try set("b", [6])
    case .manyBlocks:
      let label = String(repeating: "x", count: 1000)
      try vault.withTransaction { transaction throws(SecretError) in
        for index in 0..<30 {
          let value = [UInt8](repeating: UInt8(index), count: 3)
          content["\(index)"] = value
          try transaction.store(
            SecretBytes(value), for: SecretIdentifier(service: "tests", account: "\(index)"),
            metadata: SecretMetadata(label: label))
        }
      }
      try record()
      try compact()
      try set("1", [1])
    }
    self.generations = generations
  }

  private static func environment(_ disk: SimulatedDisk) -> VaultEnvironment {
    VaultEnvironment(
      fileSystem: disk, now: { Date(timeIntervalSince1970: 1_000_000_000) }, user: 0,
      uptime: { .zero }, sleep: { _ in })
  }

  private static func open(_ environment: VaultEnvironment) -> VaultBackend {
    VaultBackend(
      path: "vault", credentials: [FixedCredential.key], options: .cheap, environment: environment)
  }

  private static func disk(_ bytes: [UInt8]) throws -> SimulatedDisk {
    let disk = SimulatedDisk()
    _ = try disk.locate("vault", followingLink: true).directory.create("vault")
    disk.overwrite("vault", with: bytes)
    return disk
  }

  // MARK: Judging

  /// Returns a reader's outcome for `bytes`. Throws if the specification does not allow the outcome, or if anything
  /// that is read differs from the state that the file verifies as. A file that does not verify may be readable in
  /// part, as the current state or, if its commit slot may be damaged, as the one before.
  func outcome(of bytes: [UInt8], mayBeRecovered: Bool = false) throws -> Outcome {
    let environment = Self.environment(try Self.disk(bytes))
    let vault = Self.open(environment)
    let report: VaultReport
    do throws(SecretError) { report = try vault.verify() } catch {
      guard Self.refusals.contains(error.code) else { throw Wrong(description: "verify says \(error)") }
      do { try checkPartialReads(Self.open(environment), as: current) } catch {
        guard mayBeRecovered else { throw error }
        try checkPartialReads(Self.open(environment), as: previous)
      }
      return .refused(error.code)
    }
    guard let state = generations.first(where: { $0.pin == report.pin }) else {
      throw Wrong(description: "it verifies as a state that never existed: \(report.pin)")
    }
    let items = try vault.items(inService: nil).map(\.identifier.account)
    guard Set(items) == Set(state.content.keys), items.count == report.secretCount else {
      throw Wrong(description: "it lists \(items)")
    }
    for (name, value) in state.content where try vault.get(name) != value {
      throw Wrong(description: "\(name) is wrong or missing")
    }
    return .state(report.pin, isRecovered: report.isRecovered)
  }

  /// A file that does not verify may be readable in part: each read throws or is right.
  private func checkPartialReads(_ vault: VaultBackend, as state: Generation) throws {
    for name in Set(generations.flatMap(\.content.keys)) {
      do {
        let found = try vault.get(name)
        guard found == state.content[name] else {
          throw Wrong(description: "\(name) is \(String(describing: found)), and no error")
        }
      } catch let error as SecretError {
        guard Self.refusals.contains(error.code) else { throw Wrong(description: "reading says \(error)") }
      }
    }
    do {
      let items = try vault.items(inService: nil).map(\.identifier.account)
      guard Set(items) == Set(state.content.keys) else { throw Wrong(description: "it lists \(items)") }
    } catch let error as SecretError {
      guard Self.refusals.contains(error.code) else { throw Wrong(description: "listing says \(error)") }
    }
  }

  /// Returns the error of a process that has read the current state, if `bytes` then replace the file.
  func outcomeForWhoSawTheCurrentState(_ bytes: [UInt8]) throws -> SecretError.Code? {
    let disk = try Self.disk(current.bytes)
    let vault = Self.open(Self.environment(disk))
    try vault.unlock()
    disk.overwrite("vault", with: bytes)
    do throws(SecretError) {
      for (name, value) in current.content
      where try vault.lookUp(SecretIdentifier(service: "tests", account: name))?.array() != value {
        return SecretError.Code("a wrong value")
      }
      return nil
    } catch { return error.code }
  }
}

/// The ranges of the parts of a vault's file.
struct VaultAnatomy {
  let headerLength: Int
  let slots: [Range<Int>]
  /// The index of the current commit slot.
  let currentSlot: Int
  private(set) var values: [Range<Int>] = []
  let blocks: [Range<Int>]
  let root: Range<Int>
  let frames: [Range<Int>]
  let sealedMetadata: [Range<Int>]

  init(_ bytes: [UInt8]) throws {
    let disk = SimulatedDisk()
    _ = try disk.locate("vault", followingLink: true).directory.create("vault")
    disk.overwrite("vault", with: bytes)
    let environment = VaultEnvironment(fileSystem: disk, user: 0)
    let vault = try VaultFile(LocalMedium(path: "vault", environment: environment).open())
    let keys = try CredentialChain([FixedCredential.key], options: .cheap, environment: environment).unlock(
      vault)
    let open = try VaultSnapshot(vault, keys: keys)
    let state = open.state
    headerLength = vault.headerLength
    slots = (0...1).map {
      vault.headerLength + $0 * Layout.pageSize..<vault.headerLength + ($0 + 1) * Layout.pageSize
    }
    currentSlot = 1 - open.slots.next
    root = state.rootOffset..<state.baseEnd
    blocks = open.base.entries.map { $0.offset..<$0.end }
    let tail = try open.tailItems()
    for item in try open.baseItems(in: bytes) + tail.map(\.item) where !item.isRemoval {
      values.append(item.valueOffset..<item.valueOffset + item.record.valueLength)
    }
    frames = tail.map(\.frame)
    sealedMetadata = tail.map { $0.frame.lowerBound + Layout.framePrefixLength..<$0.item.valueOffset }
  }

  /// Returns `bytes` with two parts exchanged.
  static func exchange(_ one: Range<Int>, _ other: Range<Int>, in bytes: [UInt8]) -> [UInt8] {
    let (first, second) = one.lowerBound < other.lowerBound ? (one, other) : (other, one)
    return Array(bytes[..<first.lowerBound]) + bytes[second]
      + bytes[first.upperBound..<second.lowerBound] + bytes[first] + bytes[second.upperBound...]
  }
}
