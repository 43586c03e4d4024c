import CofferCore
import CofferTestSupport
import CofferSimulation
import CofferSystem
import CofferVault
import CofferVaultFormat
import FoundationEssentials
import Glibc

/// One random history of a vault on a simulated disk with power losses, compared with a model.
///
/// After each power loss the vault must open without a false alarm, verify, and have exactly the acknowledged content.
/// The change that was interrupted is there as a whole or absent. During some changes another writer makes a change, or
/// fails because the vault is busy.
struct CrashHistory {
  struct Failure: Error, CustomStringConvertible {
    let seed: UInt64
    let step: String
    let what: String
    var description: String { "seed \(seed), after \(step): \(what)" }
  }

  /// A clock that advances on each call, so that every wait ends.
  private final class Clock: @unchecked Sendable {  // each history has one thread
    private var uptime = Duration.zero
    func next() -> Duration {
      uptime += .milliseconds(50)
      return uptime
    }
  }
  private typealias Content = CrashContent

  private let seed: UInt64
  private var random: SeededRandom
  private var disk: SimulatedDisk
  private var environment: VaultEnvironment
  private var writers: [VaultBackend] = []
  /// `nil` before the vault is created.
  private var content: Content?
  /// Contents that a power loss may restore in addition to ``content``: a change was read and never acknowledged.
  private var alternatives: [Content?] = []

  private static let path = "vault"
  private static let copy = "copy"

  init(seed: UInt64, omission: SimulatedDisk.Omission = .none, hasFixedNonces: Bool = false) {
    self.seed = seed
    random = SeededRandom(seed: seed)
    disk = SimulatedDisk(omission: omission)
    let clock = Clock()
    environment = VaultEnvironment(
      fileSystem: disk, randomness: SeededRandomness(seed: seed ^ 0xA5A5, hasFixedNonces: hasFixedNonces),
      now: { Date(timeIntervalSince1970: 1_000_000_000) }, user: 0, uptime: { clock.next() },
      sleep: { _ in })
    // A few changes are enough to make a rewrite due.
    environment.compactionThreshold = 1000
    environment.recordRoleChangeDistance = 4
  }

  private mutating func pick(_ range: Range<Int>) -> Int { Int.random(in: range, using: &random) }

  private var sources: [VaultCredentialSource] {
    // Each further slot may exist or not after a power loss. A recipient's secret is not needed.
    [.key, Content.ExtraSlot.key.credential, Content.ExtraSlot.passphrase.credential] as [FixedCredential]
  }

  /// A third of the histories begin with a file that the second implementation wrote.
  private var beginsWithMerge: Bool { seed % 3 == 0 }

  private static let mergedFile = [UInt8](
    (try? Data(contentsOf: Vector.directory.appending(path: "merged.vault"))) ?? Data())

  /// Half of the histories have records of known vaults, which must never cause a false alarm.
  private var hasRecords: Bool { seed % 2 == 0 }

  private var options: VaultOptions {
    var options = VaultOptions.cheap
    options.passphraseMemory = 8192
    options.lockTimeout = .seconds(1)
    if hasRecords { options.knownVaultsDirectory = "state" }
    return options
  }

  private func open(on disk: SimulatedDisk? = nil, at path: String = Self.path) -> VaultBackend {
    var environment = environment
    if let disk { environment.fileSystem = disk }
    return VaultBackend(path: path, credentials: sources, options: options, environment: environment)
  }

  /// Makes `steps` changes, about a third of which are interrupted by a power loss. Returns the number of power losses.
  mutating func run(steps: Int) throws -> Int {
    var losses = 0
    if beginsWithMerge { try begin(with: Self.mergedFile, .merged) }
    for _ in 0..<steps {
      let merge = pick(0..<10) == 0 ? try prepareMerge() : nil
      let losesPower = pick(0..<3) == 0
      if losesPower {
        // A change makes between 1 and about 40 calls.
        disk.failPower(atCall: disk.calls + 1 + pick(0..<(pick(0..<4) == 0 ? 40 : 16)))
      }
      let old = disk.content(of: Self.path)
      let step = try step(merge)
      if !losesPower {
        if let error = step.error {
          throw Failure(seed: seed, step: step.name, what: "it failed with the power on: \(error)")
        }
        // Only the vault shows which of two writers came first.
        if let first = step.possible.first, step.possible.contains(where: { $0 != first }) {
          content = try read(oneOf: step.possible, step.name)
        }
        if hasRecords, let old, !step.wasInterrupted, pick(0..<3) == 0 {
          try checkRefusal(of: old, step.name)
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
    if let content {
      if content.extraSlots.contains(.recipient) { try checkIdentity(content) }
      try checkNothingIsLeftBehind()
    }
    return losses
  }

  /// Puts a file where a vault was created.
  private mutating func begin(with file: [UInt8], _ expected: Content) throws {
    var options = options
    options.knownVaultsDirectory = nil
    try VaultBackend.create(
      at: Self.path, credential: FixedCredential.key.credential, label: "", options: options,
      environment: environment)
    disk.overwrite(Self.path, with: file)
    content = try read(oneOf: [expected], "a merge")
  }

  /// Makes a copy of the vault go its own way, and mostly the vault too, with other secrets. Returns the change that
  /// merges the copy, or `nil` if there is no vault.
  private mutating func prepareMerge() throws -> CrashChange? {
    guard let content, let file = disk.content(of: Self.path) else { return nil }
    let directory = try disk.locate(Self.copy, followingLink: true).directory
    if disk.content(of: Self.copy) == nil { _ = try directory.create(Self.copy) }
    disk.overwrite(Self.copy, with: file)
    var options = options
    options.knownVaultsDirectory = nil
    let copy = VaultBackend(path: Self.copy, credentials: sources, options: options, environment: environment)
    let (change, name) = CrashChange.ofCopy(content, &random)
    try change.run(copy)
    if pick(0..<4) > 0, let other = CrashChange.names.filter({ $0 != name }).randomElement(using: &random) {
      let value = [UInt8](repeating: UInt8(pick(0..<256)), count: 20)
      try open().set(other, value)
      self.content = content.setting([other], to: value)
      alternatives = []
    }
    let medium = LocalMedium(path: Self.copy, environment: environment)
    return CrashChange(name: "merge after \(change.name)", applied: change.applied, hasSteps: true) { vault in
      _ = try vault.merge(with: VaultCopy(of: medium.open()))
    }
  }

  /// Checks that the records of an acknowledged change refuse the file from before it, at its path and at another one.
  private func checkRefusal(of old: [UInt8], _ step: String) throws {
    guard disk.content(of: Self.path) != old else { return }
    func refusal(at path: String) throws -> SecretError.Code? {
      let attacked = disk.duplicate()
      if path != Self.path { _ = try attacked.locate(path, followingLink: true).directory.create(path) }
      attacked.overwrite(path, with: old)
      let vault = open(on: attacked, at: path)
      do throws(SecretError) { try vault.unlock() } catch { return error.code }
      return nil
    }
    let found = try refusal(at: Self.path)
    guard found == .rolledBack || found == .unexpectedKey else {
      throw Failure(
        seed: seed, step: step, what: "of the file from before it is said \(found.debugDescription)")
    }
    let isFormer = try commitment(in: old) != commitment(in: disk.content(of: Self.path) ?? [])
    guard try refusal(at: "elsewhere") == (isFormer ? .unexpectedKey : .rolledBack) else {
      throw Failure(
        seed: seed, step: step, what: "the file from before it, elsewhere: a former key is \(isFormer)")
    }
  }

  private func commitment(in file: [UInt8]) throws -> [UInt8] {
    let length = Header.paddedLength(try Header.length(ofHeaderBeginning: file))
    return try Header(parsing: Array(file.prefix(length))).masterCommitment
  }

  /// Checks that the identity of the recipient opens the vault under its pin.
  private func checkIdentity(_ content: Content) throws {
    var options = options
    (options.pins, options.knownVaultsDirectory) = ([try open().pin()], nil)
    let vault = VaultBackend(
      path: Self.path, credentials: [Content.ExtraSlot.recipient.credential], options: options,
      environment: environment)
    for name in CrashChange.names where try vault.get(name) != content.secrets[name] {
      throw Failure(seed: seed, step: "the end", what: "the identity finds another value of \(name)")
    }
  }

  /// Checks that a rewrite removes the temporary files of earlier attempts, and so does making the records anew.
  private func checkNothingIsLeftBehind() throws {
    try open().compact()
    if hasRecords { try open().trust() }
    let left = disk.names.filter { ![Self.path, Self.copy].contains($0) && !$0.hasPrefix("state/") }
    guard left.isEmpty else { throw Failure(seed: seed, step: "the end", what: "left behind: \(left)") }
  }

  /// Simulates a kill of the process. The next process sees the system's cache. Until it has made a change, a power
  /// loss may undo what was not acknowledged.
  private mutating func goOnAfterKill(possible: [Content?], _ step: String) throws {
    disk.killProcess()
    writers = []
    content = try read(oneOf: possible, "a kill during \(step)")
    alternatives += possible
  }

  private struct Step {
    let name: String
    /// The contents that the vault may have if the power fails from now on.
    let possible: [Content?]
    let error: (any Error)?
    /// Whether another writer was to make a change at the same time.
    var wasInterrupted = false
  }

  private mutating func step(_ merge: CrashChange?) throws -> Step {
    guard let before = content else {
      let (environment, options) = (environment, options)
      let error = attempt {
        try VaultBackend.create(
          at: Self.path, credential: FixedCredential.key.credential, label: "",
          history: Content.limit(Content().versions),
          options: options, environment: environment)
      }
      if error == nil {
        content = Content()
        alternatives = []
      }
      return Step(name: "create", possible: error == nil ? [content] : [nil, Content()], error: error)
    }
    if writers.isEmpty || pick(0..<8) == 0 { writers.append(open()) }
    let writer = writers[pick(0..<writers.count)]
    let change =
      merge
      ?? (pick(0..<16) > 0 ? CrashChange.ofSecrets(&random) : CrashChange.ofSlots(before, &random))
    let concurrent = pick(0..<3) == 0 && !change.hasSteps ? interruption(of: writer) : nil
    let error = attempt { try change.run(writer) }
    disk.interrupt(atCall: nil)
    let hasSucceeded = error == nil
    let name = concurrent.map { "\(change.name), with \($0.change.name) at the same time" } ?? change.name
    let other: CrashInterruption.Answer
    do { other = try concurrent?.counts(isPowerOn: !disk.isDead) ?? .no } catch {
      throw Failure(seed: seed, step: name, what: "the other writer failed with the power on: \(error)")
    }
    // The other writer's change may come before or after this one.
    var possible: [Content] = []
    var isOn = [before]
    if other != .yes {
      possible += hasSucceeded ? [change.applied(before)] : [before, change.applied(before)]
    }
    if other != .no, let interrupting = concurrent?.change {
      let first = interrupting.applied(before)
      let isInterruptionOn = [before, change.applied(before)]
      possible += [change.applied(first), interrupting.applied(change.applied(before))]
      if !hasSucceeded { possible.append(first) }
      isOn.append(first)
      guard interrupting.isRight(isInterruptionOn) else {
        throw Failure(seed: seed, step: name, what: "the other writer read a value that was not there")
      }
      if other == .yes, isInterruptionOn.allSatisfy(interrupting.commits) { alternatives = [] }
    }
    guard change.isRight(isOn) else {
      throw Failure(seed: seed, step: name, what: "it read a value that was not there")
    }
    if hasSucceeded {
      content = possible[0]
      // An acknowledged change is durable, with every change before it.
      if isOn.allSatisfy(change.commits) { alternatives = [] }
    }
    return Step(name: name, possible: possible, error: error, wasInterrupted: concurrent != nil)
  }

  /// Makes another writer change the vault during the next change.
  private mutating func interruption(of writer: VaultBackend) -> CrashInterruption {
    let others = writers.filter { $0 !== writer }
    let other = pick(0..<4) == 0 ? open() : others.first ?? open()
    if others.allSatisfy({ $0 !== other }) { writers.append(other) }
    let interruption = CrashInterruption(change: CrashChange.ofSecrets(&random), vault: other)
    disk.interrupt(atCall: disk.calls + 1 + pick(0..<(pick(0..<4) == 0 ? 40 : 16)), with: interruption.run)
    return interruption
  }

  /// Returns the error of `body`, if any. While the power is on, `body` must not fail.
  private func attempt(_ body: () throws -> Void) -> (any Error)? {
    do {
      try body()
      return nil
    } catch {
      return error
    }
  }

  /// Returns the content of the vault, which must be one of `possible`.
  private func read(oneOf possible: [Content?], _ step: String) throws -> Content? {
    let found: Content?
    do { found = try read() } catch {
      throw Failure(seed: seed, step: step, what: "the vault does not open: \(error)")
    }
    guard let content = possible.first(where: { $0?.shown == found }) else {
      func describe(_ content: Content?) -> String { content?.description ?? "no vault" }
      let expected = possible.map(describe).joined(separator: " or ")
      throw Failure(seed: seed, step: step, what: "it holds \(describe(found)), and not \(expected)")
    }
    return content
  }

  /// Simulates a power loss, checks the vault, and continues with it.
  private mutating func check(possible: [Content?], _ step: String) throws {
    // Up to two further losses, some of them during the first read.
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
    content = try read(oneOf: possible, step)
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
    return try Content(of: vault)
  }
}
