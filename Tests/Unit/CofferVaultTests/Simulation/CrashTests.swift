import CofferTestSupport
import CofferSimulation
import CofferVault
import FoundationEssentials
import Testing

/// Power losses at random points of random histories. `COFFER_CRASH_HISTORIES` is the number of histories, and
/// `COFFER_CRASH_SEED` the first seed. Both are printed.
@Suite(.long) struct CrashTests {
  static let histories = environmentNumber("COFFER_CRASH_HISTORIES") ?? 600
  static let seed = environmentNumber("COFFER_CRASH_SEED") ?? 1

  @Test func acknowledgedChangesSurviveAndOthersAreWholeOrAbsent() throws {
    var losses = 0
    for index in 0..<Self.histories {
      var history = CrashHistory(seed: UInt64(Self.seed + index))
      losses += try history.run(steps: 12)
    }
    print("crash histories: \(Self.histories) from seed \(Self.seed), with \(losses) power losses")
  }

  /// A writer is killed at each call of a change. What the next reader records is on the disk, so that a power loss
  /// causes no false alarm.
  @Test(arguments: ["store", "compact", "rekey"])
  func whatAReaderRecordsAfterAKillSurvivesAPowerLoss(_ change: String) throws {
    var options = VaultOptions.cheap
    options.knownVaultsDirectory = "state"
    func environment(_ disk: SimulatedDisk) -> VaultEnvironment {
      VaultEnvironment(
        fileSystem: disk, randomness: SeededRandomness(seed: 1), user: 0, uptime: { .zero },
        sleep: { _ in })
    }
    func open(_ disk: SimulatedDisk) -> VaultBackend {
      VaultBackend(
        path: "vault", credentials: [FixedCredential.key], options: options, environment: environment(disk))
    }
    let made = SimulatedDisk()
    try VaultBackend.create(
      at: "vault", credential: FixedCredential.key.credential, label: "", options: options,
      environment: environment(made))
    try open(made).set("a", [1])
    var kills = 0
    for call in 1...80 {
      let disk = made.duplicate()
      disk.failPower(atCall: disk.calls + call)
      do {
        switch change {
        case "store": try open(disk).set("a", [2])
        case "compact": try open(disk).compact()
        default: try open(disk).rekey()
        }
      } catch { kills += 1 }
      disk.killProcess()
      let found = try open(disk).get("a")
      for seed in 0..<16 as Range<UInt64> {
        var random = SeededRandom(seed: seed)
        let left = open(disk.afterPowerLoss(&random))
        #expect(try left.get("a") == found, "killed at call \(call), seed \(seed)")
      }
    }
    #expect(kills > 10)
  }

  /// A writer is killed at each call while it replaces the file. The changes of the next writer are durable.
  @Test func changesAcknowledgedAfterAKillSurviveAPowerLoss() throws {
    func environment(_ disk: SimulatedDisk) -> VaultEnvironment {
      VaultEnvironment(
        fileSystem: disk, randomness: SeededRandomness(seed: 1), user: 0, uptime: { .zero },
        sleep: { _ in })
    }
    func open(_ disk: SimulatedDisk) -> VaultBackend {
      VaultBackend(
        path: "vault", credentials: [FixedCredential.key], options: .cheap, environment: environment(disk))
    }
    let made = SimulatedDisk()
    try VaultBackend.create(
      at: "vault", credential: FixedCredential.key.credential, label: "", options: .cheap,
      environment: environment(made))
    var kills = 0
    for call in 1...60 {
      let disk = made.duplicate()
      let writer = open(disk)
      try writer.set("a", [1])
      disk.failPower(atCall: disk.calls + call)
      do { try writer.compact() } catch { kills += 1 }
      disk.killProcess()
      try open(disk).set("b", [2])
      for seed in 0..<16 as Range<UInt64> {
        var random = SeededRandom(seed: seed)
        let left = open(disk.afterPowerLoss(&random))
        #expect(try left.get("a") == [1] && left.get("b") == [2], "killed at call \(call), seed \(seed)")
      }
    }
    #expect(kills > 10)
  }

  /// A power loss left one slot behind or torn. A second one tears the slot that the next commit writes first, which
  /// must not be the good one.
  @Test(arguments: [0, 1], [false, true])
  func theNextCommitSparesTheOnlyGoodSlot(_ slot: Int, isTorn: Bool) throws {
    let disk = SimulatedDisk()
    let environment = VaultEnvironment(fileSystem: disk, randomness: SeededRandomness(seed: 1), user: 0)
    try VaultBackend.create(
      at: "vault", credential: FixedCredential.key.credential, label: "", options: .cheap,
      environment: environment)
    func open(_ disk: SimulatedDisk) -> VaultBackend {
      var environment = environment
      environment.fileSystem = disk
      return VaultBackend(
        path: "vault", credentials: [FixedCredential.key], options: .cheap, environment: environment)
    }
    try open(disk).set("a", [1])
    let old = try #require(disk.content(of: "vault"))
    try open(disk).set("a", [2])
    var bytes = try #require(disk.content(of: "vault"))
    let page = 4096 * (1 + slot)..<4096 * (2 + slot)
    bytes.replaceSubrange(page, with: isTorn ? [UInt8](repeating: 0, count: page.count) : Array(old[page]))
    disk.overwrite("vault", with: bytes)
    for call in 1...40 {
      let attempt = disk.duplicate()
      attempt.failPower(atCall: attempt.calls + call)
      do { try open(attempt).set("a", [3]) } catch {
        // The power failed before the change was acknowledged.
      }
      for seed in 0..<16 as Range<UInt64> {
        var random = SeededRandom(seed: seed)
        let value = try open(attempt.afterPowerLoss(&random)).get("a")
        #expect(value == [2] || value == [3], "call \(call), seed \(seed)")
      }
    }
  }

  /// The simulation detects the failures that it is made for.
  @Test(arguments: [
    SimulatedDisk.Omission.frameBarrier, .slotBarrier, .fileBarrier, .directoryBarrier, .promptSlotBarrier,
    .exclusion,
  ])
  func aMissingBarrierOrLockIsDetected(_ omission: SimulatedDisk.Omission) throws {
    #expect(firstFailure { CrashHistory(seed: $0, omission: omission) } != nil)
  }

  @Test func aFixedNonceIsDetected() throws {
    #expect(firstFailure { CrashHistory(seed: $0, hasFixedNonces: true) } != nil)
  }

  private func firstFailure(_ make: (UInt64) -> CrashHistory) -> String? {
    for seed in 0..<3000 as Range<UInt64> {
      var history = make(seed)
      do { _ = try history.run(steps: 12) } catch {
        print("noticed: \(error)")
        return "\(error)"
      }
    }
    return nil
  }
}

/// Whether tests try everything instead of a sample.
let isExhaustive = environmentNumber("COFFER_EXHAUSTIVE") == 1

/// The number in an environment variable, or `nil`.
func environmentNumber(_ name: String) -> Int? {
  ProcessInfo.processInfo.environment[name].flatMap { Int($0) }
}
