import CofferVault
import CofferCore
import CofferTestSupport
import CofferSimulation
import Glibc
import Testing

/// Every call of every operation fails in every way: the operation succeeds or reports the failure, no acknowledged
/// change is lost, and the vault stays usable. `COFFER_EXHAUSTIVE=1` adds more ways to fail.
@Suite(.long) struct FaultTests {
  typealias Fault = SimulatedDisk.Fault

  @Test(arguments: FaultScenario.Operation.allCases, [false, true])
  func everyCallCanFailOnce(_ operation: FaultScenario.Operation, isWarm: Bool) throws {
    var numbers = [ENOSPC, EIO, EACCES, EBUSY]
    if isExhaustive { numbers += [EDQUOT, EROFS, ENOMEM, EMFILE, EXDEV, EFBIG, EPERM] }
    try run(operation, isWarm: isWarm, numbers.map { .failure($0) }, repeats: [0]) { scenario, _ in
      checkError(of: scenario)
    }
  }

  /// An operation may succeed in another way. If it fails, it reports the fault.
  private func checkError(of scenario: FaultScenario) {
    guard let error = scenario.error else { return }
    #expect(scenario.allowedCodes.contains(error.code), "\(scenario): \(error.code): \(error)")
    #expect(!error.reason.isEmpty && error.advice != nil, "\(scenario): \(error)")
  }

  /// The disk fails at a call and keeps failing until the operation has ended.
  @Test(arguments: FaultScenario.Operation.allCases)
  func everyCallCanFailFromThenOn(_ operation: FaultScenario.Operation) throws {
    try run(operation, isWarm: true, [.failure(EIO), .failure(ENOSPC)], repeats: [.max]) { scenario, calls in
      // Only failures to release the lock, to remove a file, or to copy an acknowledged commit to the other slot are
      // not reported.
      let isCopy = scenario.faulted == [.write, .unlock]
      if scenario.faulted.contains(where: { $0 != .unlock && $0 != .remove }),
        !isCopy || scenario.fault.call != calls - 1
      {
        #expect(scenario.error != nil, "\(scenario): it succeeded")
      }
    }
  }

  /// With records of known vaults. A record that cannot be written makes no operation fail, and no fault leaves a state
  /// that is refused later.
  @Test(arguments: FaultScenario.Operation.allCases)
  func everyCallCanFailWithRecords(_ operation: FaultScenario.Operation) throws {
    let start = try FaultScenario.start(for: operation)
    let unrecorded = try FaultScenario.callCount(of: operation, from: start, isWarm: true)
    try run(
      operation, isWarm: true, hasRecords: true, [.failure(EIO), .failure(EBUSY)], repeats: [0, .max]
    ) { scenario, _ in
      checkError(of: scenario)
      // The record is made when the new vault is on the disk.
      guard operation == .create, scenario.fault.repeats > 0 else { return }
      #expect((scenario.error == nil) == (scenario.fault.call > unrecorded), "\(scenario)")
    }
  }

  @Test(arguments: FaultScenario.Operation.allCases, [false, true])
  func interruptionsAndShortTransfersAreRetried(
    _ operation: FaultScenario.Operation, isWarm: Bool
  ) throws {
    try run(
      operation, isWarm: isWarm,
      [.failure(EINTR), .short(100)] + (isExhaustive ? [.short(1), .short(4095)] : []),
      repeats: isExhaustive ? [0, 3] : [3]
    ) { scenario, _ in
      // These calls are not documented to fail with `EINTR`.
      if case .failure = scenario.fault.kind,
        scenario.faulted.contains(where: { [.status, .rename, .remove].contains($0) })
      {
        return
      }
      #expect(scenario.error == nil, "\(scenario): \(String(describing: scenario.error))")
    }
  }

  /// Otherwise it would be repeated for ever.
  @Test func aWriteThatTransfersNothingIsAnError() throws {
    let start = try FaultScenario.start(for: .store)
    let calls = try FaultScenario.callCount(of: .store, from: start, isWarm: true)
    var writes = 0
    for call in 1...calls {
      var scenario = FaultScenario(.store, from: start, isWarm: true)
      try scenario.run(with: Fault(call: call, kind: .short(0)))
      guard scenario.faulted == [.write] else { continue }
      writes += 1
      // A failure to copy the commit to the other slot is not reported.
      #expect(scenario.error?.code == (call == calls - 1 ? nil : .io), "\(scenario)")
    }
    #expect(writes > 0)
  }

  private func run(
    _ operation: FaultScenario.Operation, isWarm: Bool, hasRecords: Bool = false, _ faults: [Fault.Kind],
    repeats: [Int], _ judge: (_ scenario: FaultScenario, _ calls: Int) throws -> Void
  ) throws {
    let start = try FaultScenario.start(for: operation, hasRecords: hasRecords)
    let calls = try FaultScenario.callCount(
      of: operation, from: start, isWarm: isWarm, hasRecords: hasRecords)
    #expect(calls > 2)
    if !isWarm, operation != .create, !isExhaustive {
      // Opening is the same for every operation, so one of each kind is enough.
      guard [.store, .verify, .lookup, .rekey].contains(operation) else { return }
    }
    for call in 1...calls {
      for kind in faults {
        for repeats in repeats {
          var scenario = FaultScenario(operation, from: start, isWarm: isWarm, hasRecords: hasRecords)
          try scenario.run(with: Fault(call: call, kind: kind, repeats: repeats))
          try judge(scenario, calls)
        }
      }
    }
  }

  // MARK: After a failed barrier

  /// The system may have dropped the pages that it could not write and marked them clean.
  @Test func afterAFailedBarrierTheNextChangeGoesToANewFile() throws {
    let start = try FaultScenario.start(for: .store)
    let calls = try FaultScenario.callCount(of: .store, from: start, isWarm: true)
    var barriers = 0
    for call in 1...calls {
      var scenario = FaultScenario(.store, from: start, isWarm: true)
      let before = scenario.disk.inode(of: FaultScenario.path)
      try scenario.run(with: Fault(call: call, kind: .failure(EIO)))
      guard scenario.faulted == [.synchronize] else { continue }
      barriers += 1
      #expect(scenario.error?.code == .io)
      #expect(scenario.inodeAfterNextChange != before)
    }
    #expect(barriers > 0)
  }

  /// A reader makes what it records durable. If that fails, the system may have dropped the copy of the last commit,
  /// and the next commit must not overwrite the only slot that is on the disk.
  @Test(arguments: [1, 2] as [UInt8])
  func afterAFailedBarrierOfAReaderItsNextChangeGoesToANewFile(_ changes: UInt8) throws {
    let start = try FaultScenario.start(for: .store, hasRecords: true)
    for call in 1...60 {
      let writer = FaultScenario(.store, from: start, isWarm: false)
      for value in 1...changes { try writer.vault.set("new", [value]) }
      let reader = FaultScenario(.store, from: writer.disk, isWarm: false, hasRecords: true)
      reader.disk.refuse(.synchronize, EIO)
      #expect(try reader.vault.get("new") == [changes])
      #expect(try reader.vault.notices().contains(.unrecorded))
      reader.disk.refuse(.synchronize, nil)
      reader.disk.failPower(atCall: reader.disk.calls + call)
      do { try reader.vault.set("next", [1]) } catch {
        // The power failed before the change was acknowledged.
      }
      for seed in 0..<8 as Range<UInt64> {
        var random = SeededRandom(seed: seed)
        let lost = reader.disk.afterPowerLoss(&random)
        let left = FaultScenario(.lookup, from: lost, isWarm: false, hasRecords: true).vault
        #expect(try left.get("new") == [changes], "call \(call), seed \(seed)")
      }
    }
  }

  /// A command that leaves a secret as it is reports it as stored.
  @Test func aTransactionWithoutChangesMakesWhatItReadDurable() throws {
    let scenario = FaultScenario(.store, from: try FaultScenario.start(for: .store), isWarm: true)
    let before = scenario.disk.inode(of: FaultScenario.path)
    scenario.disk.refuse(.synchronize, EIO)
    #expect(throws: SecretError.self) { try scenario.vault.withTransaction { _ in } }
    // The system may have dropped the pages that it could not write, so the file is written again.
    scenario.disk.refuse(.synchronize, nil)
    try scenario.vault.withTransaction { _ in }
    #expect(scenario.disk.inode(of: FaultScenario.path) != before)
  }

  @Test func aRecordThatCannotBePlacedLeavesNoTemporaryFile() throws {
    let start = try FaultScenario.start(for: .store)
    let scenario = FaultScenario(.store, from: start, isWarm: false, hasRecords: true)
    scenario.disk.refuse(.rename, EIO)
    #expect(try scenario.vault.notices().contains(.unrecorded))
    #expect(scenario.disk.names == [FaultScenario.path])
    scenario.disk.refuse(.rename, nil)
    #expect(try !scenario.open().notices().contains(.unrecorded))
    #expect(scenario.disk.names.count > 1 && !scenario.disk.names.contains { $0.contains("/.") })
  }

  // MARK: A file that is a mount point

  @Test func aMountedFileIsAppendedToForEver() throws {
    let start = try FaultScenario.start(for: .store)
    let scenario = FaultScenario(.store, from: start, isWarm: true, compactionThreshold: 0)
    let disk = scenario.disk
    disk.refuse(.rename, EBUSY)
    let inode = disk.inode(of: FaultScenario.path)
    let vault = scenario.vault
    for index in 0..<200 {
      try vault.set("name \(index % 5)", [UInt8](repeating: UInt8(index), count: index))
    }
    #expect(disk.inode(of: FaultScenario.path) == inode)
    #expect(disk.names == [FaultScenario.path])
    for change in [
      { _ = try vault.addKeySlot(FixedCredential(kind: .passphrase("p")).credential) },
      { try vault.rekey() },
      { try vault.compact() },
    ] {
      let error = #expect(throws: SecretError.self) { try change() }
      #expect(error?.code == .denied)
      #expect(error?.reason.contains("mount point") ?? false)
      #expect(error?.advice?.contains("mount its directory") ?? false)
    }
    let fresh = scenario.open()
    for index in 195..<200 {
      #expect(try fresh.get("name \(index % 5)") == [UInt8](repeating: UInt8(index), count: index))
    }
    #expect(try fresh.verify().secretCount == FaultScenario.startContent.count + 5)
    // Once the file can be replaced, a rewrite replaces it.
    disk.refuse(.rename, nil)
    try fresh.compact()
    #expect(disk.inode(of: FaultScenario.path) != inode)
  }

  /// A store succeeds although the rewrite before it fails.
  @Test(arguments: [EXDEV, EACCES, ENOSPC, EIO, EROFS])
  func aFailedRewriteFallsBackToAppending(_ number: Int32) throws {
    let start = try FaultScenario.start(for: .store)
    let scenario = FaultScenario(.store, from: start, isWarm: true, compactionThreshold: 0)
    scenario.disk.refuse(.rename, number)
    for index in 0..<40 { try scenario.vault.set("one", [UInt8(index)]) }
    #expect(scenario.disk.names == [FaultScenario.path])
    #expect(try scenario.open().get("one") == [39])
    #expect(try scenario.open().verify().secretCount == FaultScenario.startContent.count + 1)
  }
}
