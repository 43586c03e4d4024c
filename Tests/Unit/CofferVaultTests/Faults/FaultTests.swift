import CofferVault
import CofferCore
import CofferTestSupport
import CofferSimulation
import Glibc
import Testing

/// Every call of every operation fails in every way: the operation succeeds or reports the failure, no
/// acknowledged change is lost, and the vault stays usable. `COFFER_EXHAUSTIVE=1` adds more ways to fail.
@Suite(.long) struct FaultTests {
  typealias Fault = SimulatedDisk.Fault

  @Test(arguments: FaultScenario.Operation.allCases, [false, true])
  func everyCallCanFailOnce(_ operation: FaultScenario.Operation, isWarm: Bool) throws {
    var numbers = [ENOSPC, EIO, EACCES, EBUSY]
    if isExhaustive { numbers += [EDQUOT, EROFS, ENOMEM, EMFILE, EXDEV, EFBIG, EPERM] }
    try run(operation, isWarm: isWarm, numbers.map { .failure($0) }, repeats: [0]) { scenario, _ in
      // An operation may succeed in another way. If it fails, it reports the fault.
      guard let error = scenario.error else { return }
      #expect(scenario.allowedCodes.contains(error.code), "\(scenario): \(error.code): \(error)")
      #expect(!error.reason.isEmpty && error.advice != nil, "\(scenario): \(error)")
    }
  }

  /// The disk fails at a call and keeps failing until the operation has ended.
  @Test(arguments: FaultScenario.Operation.allCases)
  func everyCallCanFailFromThenOn(_ operation: FaultScenario.Operation) throws {
    try run(operation, isWarm: true, [.failure(EIO), .failure(ENOSPC)], repeats: [.max]) { scenario, calls in
      // Only failures to release the lock, to remove a file, or to copy an acknowledged commit to the other
      // slot are not reported.
      let isCopy = scenario.faulted == [.write, .unlock]
      if scenario.faulted.contains(where: { $0 != .unlock && $0 != .remove }),
        !isCopy || scenario.fault.call != calls - 1
      {
        #expect(scenario.error != nil, "\(scenario): it succeeded")
      }
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

  private func run(
    _ operation: FaultScenario.Operation, isWarm: Bool, _ faults: [Fault.Kind], repeats: [Int],
    _ judge: (_ scenario: FaultScenario, _ calls: Int) throws -> Void
  ) throws {
    let start = try FaultScenario.start(for: operation)
    let calls = try FaultScenario.callCount(of: operation, from: start, isWarm: isWarm)
    #expect(calls > 2)
    if !isWarm, operation != .create, !isExhaustive {
      // Opening is the same for every operation, so one of each kind is enough.
      guard [.store, .verify, .lookup, .rekey].contains(operation) else { return }
    }
    for call in 1...calls {
      for kind in faults {
        for repeats in repeats {
          var scenario = FaultScenario(operation, from: start, isWarm: isWarm)
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
    #expect(barriers == 2)
  }

  // MARK: A file that is a mount point

  @Test func aMountedFileIsAppendedToForEver() throws {
    let start = try FaultScenario.start(for: .store)
    let scenario = FaultScenario(.store, from: start, isWarm: true)
    let disk = scenario.disk
    disk.refuseRename(EBUSY)
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
    disk.refuseRename(nil)
    try fresh.compact()
    #expect(disk.inode(of: FaultScenario.path) != inode)
  }

  /// A store succeeds although the rewrite before it fails.
  @Test(arguments: [EXDEV, EACCES, ENOSPC, EIO, EROFS])
  func aFailedRewriteFallsBackToAppending(_ number: Int32) throws {
    let start = try FaultScenario.start(for: .store)
    let scenario = FaultScenario(.store, from: start, isWarm: true, compactionThreshold: 0)
    scenario.disk.refuseRename(number)
    for index in 0..<20 { try scenario.vault.set("one", [UInt8(index)]) }
    #expect(scenario.disk.names == [FaultScenario.path])
    #expect(try scenario.open().get("one") == [19])
    #expect(try scenario.open().verify().secretCount == FaultScenario.startContent.count + 1)
  }
}
