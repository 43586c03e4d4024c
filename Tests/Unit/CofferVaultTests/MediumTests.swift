import CofferCore
import CofferSimulation
import CofferTestSupport
import CofferTesting
import CofferVault
import FoundationEssentials
import Synchronization
import Testing

/// A vault on a medium that has no locks and refuses late changes.
@Suite struct MediumTests {
  private static func environment(seed: UInt64 = 1) -> VaultEnvironment {
    var environment = VaultEnvironment(
      fileSystem: SimulatedDisk(), randomness: SeededRandomness(seed: seed),
      now: { Date(timeIntervalSince1970: 1_000_000_000) }, user: 0)
    // A few changes are enough to make a rewrite due.
    environment.compactionThreshold = 1000
    return environment
  }

  @Test func theVaultPassesTheConformanceSuiteOnAnotherMedium() async throws {
    var environment = VaultEnvironment()
    environment.watchPeriod = .milliseconds(50)
    let medium = MemoryMedium()
    let made = environment
    try VaultBackend.create(
      on: medium, credential: FixedCredential.key.credential, options: .cheap, environment: made)
    var options = SecretBackendConformance.Options()
    options.setHistoryVersions = {
      try ($0 as? VaultBackend)?.setHistoryLimit(#require(HistoryLimit(versions: $1, days: 90)))
    }
    let report = try await SecretBackendConformance(options: options) {
      VaultBackend(medium, credentials: [FixedCredential.key], options: .cheap, environment: made)
    }.run()
    #expect(report.skipped.isEmpty)
  }

  /// Random changes by several writers. Before some of them are published, another writer makes a change. The medium
  /// refuses others, or does not confirm them.
  @Test func refusedChangesAreMadeAgainOnTheNewerState() throws {
    var events: [String: Int] = [:]
    for seed in 1...120 as ClosedRange<UInt64> {
      var random = SeededRandom(seed: seed)
      func pick(_ range: Range<Int>) -> Int { Int.random(in: range, using: &random) }
      let (environment, medium) = (Self.environment(seed: seed), MemoryMedium())
      var options = VaultOptions.cheap
      options.passphraseMemory = 8192
      // Half of the histories have records, which must never refuse the vault.
      if seed % 2 == 0 { options.knownVaultsDirectory = "state" }
      try VaultBackend.create(
        on: medium, credential: FixedCredential.key.credential,
        history: CrashContent.limit(CrashContent().versions), options: options, environment: environment)
      let sources = [
        .key, CrashContent.ExtraSlot.key.credential, CrashContent.ExtraSlot.passphrase.credential,
      ]
      let writers = (0..<3).map { _ in
        VaultBackend(medium, credentials: sources, options: options, environment: environment)
      }
      var content = CrashContent()
      for step in 0..<16 {
        let change =
          pick(0..<6) > 0 ? CrashChange.ofSecrets(&random) : CrashChange.ofSlots(content, &random)
        let other = CrashChange.ofSecrets(&random)
        let (first, second) = (writers[pick(0..<2)], writers[2])
        var otherRan: (any Error)??
        var planned = (0..<pick(0..<3)).map { _ in MemoryMedium.Event.refusal }
        let isInterrupted = !change.hasSteps && pick(0..<2) == 0
        if isInterrupted {
          planned.append(
            .interruption {
              var failure: (any Error)?
              do { try other.run(second) } catch { failure = error }
              otherRan = .some(failure)
            })
        }
        let isUnconfirmed = !isInterrupted && !change.hasSteps && pick(0..<6) == 0
        if isUnconfirmed { planned.append(.unconfirmed) }
        medium.events = planned
        var error: (any Error)?
        do { try change.run(first) } catch let failure { error = failure }
        let isLeft = !medium.events.isEmpty
        medium.events = []
        let before = content
        var states = [before]
        if let failure = otherRan {
          #expect(failure == nil, "seed \(seed), step \(step): \(other.name)")
          states.append(other.applied(before))
          #expect(other.isRight([before]))
          events["interruption", default: 0] += 1
        }
        content = change.applied(states.last ?? before)
        let wasUnconfirmed = isUnconfirmed && !isLeft
        #expect(
          (error != nil) == wasUnconfirmed,
          "seed \(seed), step \(step), \(change.name): \(String(describing: error))")
        if wasUnconfirmed { events["unconfirmed", default: 0] += 1 }
        events["refusal", default: 0] += planned.count { if case .refusal = $0 { true } else { false } }
        #expect(change.isRight(states))
        let reader =
          pick(0..<3) == 0
          ? VaultBackend(medium, credentials: sources, options: options, environment: environment)
          : writers[pick(0..<3)]
        let found = try CrashContent(of: reader)
        #expect(found == content.shown, "seed \(seed), step \(step), \(change.name)")
        if found != content.shown { return }
      }
    }
    print("events before a publication: \(events)")
    #expect(events.count == 3 && events.values.allSatisfy { $0 > 50 })
  }

  @Test func aNewVaultIsRefusedWhereAnotherOneCameFirst() throws {
    for (event, code) in [(MemoryMedium.Event.refusal, SecretError.Code.alreadyExists), (.unconfirmed, .io)] {
      let medium = MemoryMedium()
      medium.events = [event]
      let error = #expect(throws: SecretError.self) {
        try VaultBackend.create(
          on: medium, credential: FixedCredential.key.credential, options: .cheap,
          environment: Self.environment())
      }
      #expect(error?.code == code)
    }
  }

  @Test func aBodyRunsAgainAfterARefusalAndItsLastResultCounts() throws {
    let (environment, medium) = (Self.environment(), MemoryMedium())
    try VaultBackend.create(
      on: medium, credential: FixedCredential.key.credential, options: .cheap, environment: environment)
    let vaults = (0..<2).map { _ in
      VaultBackend(medium, credentials: [FixedCredential.key], options: .cheap, environment: environment)
    }
    try vaults[0].set("count", [1])
    medium.events = [.interruption { try? vaults[1].set("count", [5]) }]
    var runs = 0
    let result = try vaults[0].withTransaction { transaction throws(SecretError) in
      runs += 1
      let old = try transaction.lookUp(identifier("count"))?.array()[0] ?? 0
      try transaction.store(SecretBytes([old + 1]), for: identifier("count"))
      return old
    }
    #expect(runs == 2 && result == 5)
    #expect(try vaults[1].get("count") == [6])
  }

  @Test func aLargeChangeIsRefusedAndMadeAgain() throws {
    let medium = MemoryMedium()
    var environment = Self.environment()
    environment.compactionThreshold = 1 << 30
    try VaultBackend.create(
      on: medium, credential: FixedCredential.key.credential, options: .cheap, environment: environment)
    let vault = VaultBackend(
      medium, credentials: [FixedCredential.key], options: .cheap, environment: environment)
    medium.events = [.refusal, .refusal]
    try vault.withTransaction { transaction throws(SecretError) in
      for number in 0..<20 as Range<UInt8> {
        try transaction.store(
          SecretBytes([UInt8](repeating: number, count: 200_000)), for: identifier("\(number)"))
      }
    }
    for number in 0..<20 as Range<UInt8> {
      #expect(try vault.get("\(number)") == [UInt8](repeating: number, count: 200_000))
    }
    #expect(try vault.verify().secretCount == 20)
  }

  @Test func aWriterThatAlwaysLosesGivesUpAtItsDeadline() throws {
    let medium = MemoryMedium()
    let uptime = Mutex(Duration.zero)
    var environment = Self.environment()
    environment.uptime = {
      uptime.withLock {
        $0 += .seconds(1)
        return $0
      }
    }
    try VaultBackend.create(
      on: medium, credential: FixedCredential.key.credential, options: .cheap, environment: environment)
    let vault = VaultBackend(
      medium, credentials: [FixedCredential.key], options: .cheap, environment: environment)
    try vault.set("a", [1])
    medium.events = [MemoryMedium.Event](repeating: .refusal, count: 1000)
    let error = #expect(throws: SecretError.self) { try vault.set("a", [2]) }
    #expect(error?.code == .timedOut)
    medium.events = []
    #expect(try vault.get("a") == [1])
  }
}
