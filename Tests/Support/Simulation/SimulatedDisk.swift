package import CofferSystem
import Foundation

/// A disk in memory that distinguishes what has reached the platter from what is only in the system's cache.
///
/// Every call is counted. The power fails at a chosen call: that call and all later ones throw, and
/// ``afterPowerLoss(_:)`` returns a disk with content that may be left. After the last barrier, each 512-byte
/// sector of each write, each change of a size and each change of a directory entry is kept, lost or torn
/// independently. Thread-safe.
package final class SimulatedDisk: FileSystem, @unchecked Sendable {  // the state is used only under the lock
  /// A barrier that the disk ignores, so that a test can check that its absence is detected.
  package enum Omission: Sendable {
    case none
    /// The barrier after frames.
    case frameBarrier
    /// The barrier after a whole new file.
    case fileBarrier
    /// The barrier after a commit slot.
    case slotBarrier
    case directoryBarrier
    /// The barrier after a commit slot takes effect when the file is locked next, after the change is
    /// acknowledged.
    case promptSlotBarrier
    /// A lock excludes no other process.
    case exclusion
  }

  fileprivate final class Inode {
    let number: UInt64
    var durable: [UInt8] = []
    var current: [UInt8] = []
    /// The changes to the content since the last barrier, in order.
    var pending: [Change] = []
    var lockHolders: Set<ObjectIdentifier> = []
    var isExclusive = false
    /// A barrier was requested and has not taken effect.
    var isDue = false
    /// The number of barriers so far.
    var barriers = 0
    init(_ number: UInt64) { self.number = number }

    /// Applies the pending changes to the platter.
    func applyPending() {
      isDue = false
      for change in pending {
        switch change {
        case .truncate(let size): SimulatedDisk.resize(&durable, to: size)
        case .write(let offset, let bytes): SimulatedDisk.put(bytes, at: offset, in: &durable)
        }
      }
      pending = []
    }
  }

  fileprivate enum Change {
    case write(offset: Int, bytes: [UInt8])
    case truncate(size: Int)
  }

  fileprivate enum EntryChange {
    case add(String, Inode)
    case remove(String)
    /// With the inode, because the target of the entry does not depend on which changes before it were kept.
    case rename(String, to: String, Inode)
  }

  fileprivate struct State {
    var entries: [String: Inode] = [:]
    var durableEntries: [String: Inode] = [:]
    var pendingEntries: [EntryChange] = []
    var nextInode: UInt64 = 1
    var calls = 0
    /// The call at which the power fails.
    var failsAt: Int?
    var isDead = false
    /// The call that fails with the power on.
    var fault: Fault?
    /// The operation that always fails, with its `errno`.
    var refusal: (operation: Operation, number: Int32)?
    /// The operations that the fault affected.
    var faulted: [Operation] = []
    var omission = Omission.none
    /// The body that runs just before a call.
    var interruption: (call: Int, body: () -> Void)?
  }

  /// The calls that faults distinguish.
  package enum Operation: Sendable {
    case open, create, status, rename, remove, list, read, write, truncate, synchronize, synchronizeDirectory,
      lock,
      unlock
  }

  /// A failure of one call. Later calls work.
  package struct Fault: Sendable {
    package enum Kind: Hashable, Sendable {
      /// The call fails with this `errno` and has no effect.
      case failure(Int32)
      /// A read or a write transfers at most this many bytes. Other calls work.
      case short(Int)
    }
    package var call: Int
    package var kind: Kind
    /// The number of further calls that fail in the same way.
    package var repeats: Int

    package init(call: Int, kind: Kind, repeats: Int = 0) {
      (self.call, self.kind, self.repeats) = (call, kind, repeats)
    }
  }

  private let lock = NSRecursiveLock()
  private var state = State()

  package init(omission: Omission = .none) { state.omission = omission }

  private init(_ initial: State) { state = initial }

  fileprivate func withState<R>(_ body: (inout State) -> R) -> R {
    lock.lock()
    defer { lock.unlock() }
    return body(&state)
  }

  package var calls: Int { withState { $0.calls } }
  package var names: [String] { withState { $0.entries.keys.sorted() } }
  package func failPower(atCall call: Int?) { withState { $0.failsAt = call } }
  package var isDead: Bool { withState { $0.isDead } }
  /// Runs `body` on the same disk just before a call, as another process could.
  package func interrupt(atCall call: Int?, with body: @escaping () -> Void = {}) {
    withState { state in state.interruption = call.map { ($0, body) } }
  }
  package func inject(_ fault: Fault?) {
    withState { ($0.fault, $0.faulted) = (fault, []) }
  }
  /// The operations that the injected fault affected.
  package var faulted: [Operation] { withState { $0.faulted } }
  /// Makes an operation fail from now on: with `EBUSY`, a rename of a file that is a mount point.
  package func refuse(_ operation: Operation, _ number: Int32?) {
    withState { state in state.refusal = number.map { (operation, $0) } }
  }
  /// The inode number of the file with a name.
  package func inode(of name: String) -> UInt64? { withState { $0.entries[name]?.number } }

  /// The number of barriers that were asked for the file with a name.
  package func barriers(of name: String) -> Int { withState { $0.entries[name]?.barriers ?? 0 } }

  /// A copy of the disk on which no file is open.
  package func duplicate() -> SimulatedDisk {
    withState { state in
      var copies: [ObjectIdentifier: Inode] = [:]
      func copy(_ inode: Inode) -> Inode {
        if let known = copies[ObjectIdentifier(inode)] { return known }
        let copy = Inode(inode.number)
        (copy.durable, copy.current, copy.pending) = (inode.durable, inode.current, inode.pending)
        copies[ObjectIdentifier(inode)] = copy
        return copy
      }
      var next = state
      next.entries = state.entries.mapValues(copy)
      next.durableEntries = state.durableEntries.mapValues(copy)
      next.pendingEntries = state.pendingEntries.map { change in
        switch change {
        case .add(let name, let inode): .add(name, copy(inode))
        case .remove: change
        case .rename(let name, let newName, let inode): .rename(name, to: newName, copy(inode))
        }
      }
      return SimulatedDisk(next)
    }
  }

  /// The bytes of a file, as a program would read them.
  package func content(of name: String) -> [UInt8]? { withState { $0.entries[name]?.current } }

  /// Replaces the content of a file durably.
  package func overwrite(_ name: String, with bytes: [UInt8]) {
    withState { state in
      guard let inode = state.entries[name] else { return }
      (inode.current, inode.durable, inode.pending) = (bytes, bytes, [])
    }
  }

  // MARK: Calls

  package func locate(_ path: String, followingLink: Bool) throws(FileSystemError) -> Location {
    Location(directory: SimulatedDirectory(disk: self), name: path, path: path)
  }

  /// Counts a call and runs it, unless the power is off or the call fails. `body` receives the largest number
  /// of bytes that it may transfer.
  fileprivate func call<R>(
    _ operation: Operation, _ body: (inout State, _ most: Int) -> Result<R, FileSystemError>
  ) throws(FileSystemError) -> R {
    let interruption = withState { state -> (() -> Void)? in
      guard let interruption = state.interruption, state.calls + 1 >= interruption.call else { return nil }
      state.interruption = nil
      return interruption.body
    }
    interruption?()
    let result = withState { state -> Result<R, FileSystemError> in
      state.calls += 1
      if state.isDead || state.calls == state.failsAt {
        state.isDead = true
        return .failure(FileSystemError(EIO))
      }
      if let refusal = state.refusal, operation == refusal.operation {
        return .failure(FileSystemError(refusal.number))
      }
      guard let fault = state.fault, state.calls >= fault.call, state.calls - fault.call <= fault.repeats
      else {
        return body(&state, .max)
      }
      state.faulted.append(operation)
      switch fault.kind {
      case .failure(let number): return .failure(FileSystemError(number))
      case .short(let most): return body(&state, most)
      }
    }
    return try result.get()
  }

  /// Simulates the end of the process: what it has written stays in the cache, and its locks are released.
  package func killProcess() {
    withState { state in
      (state.isDead, state.failsAt) = (false, nil)
      for inode in state.entries.values { inode.lockHolders = [] }
    }
  }

  // MARK: Power loss

  /// Returns a disk with random content that the platter may hold after a power loss.
  package func afterPowerLoss(_ random: inout some RandomNumberGenerator) -> SimulatedDisk {
    withState { state in
      var next = State()
      next.omission = state.omission
      next.nextInode = state.nextInode
      var survivors: [ObjectIdentifier: Inode] = [:]
      func survivor(_ inode: Inode) -> Inode {
        if let known = survivors[ObjectIdentifier(inode)] { return known }
        let copy = Inode(inode.number)
        copy.durable = Self.survivingContent(of: inode, &random)
        copy.current = copy.durable
        survivors[ObjectIdentifier(inode)] = copy
        return copy
      }
      var entries = state.durableEntries
      for change in state.pendingEntries where Bool.random(using: &random) {
        switch change {
        case .add(let name, let inode): entries[name] = inode
        case .remove(let name): entries[name] = nil
        case .rename(let name, let newName, let inode):
          // The old name may remain, because not every file system renames atomically.
          if Int.random(in: 0..<8, using: &random) > 0 { entries[name] = nil }
          entries[newName] = inode
        }
      }
      for (name, inode) in entries.sorted(by: { $0.key < $1.key }) {
        next.entries[name] = survivor(inode)
      }
      next.durableEntries = next.entries
      return SimulatedDisk(next)
    }
  }

  private static func survivingContent(
    of inode: Inode, _ random: inout some RandomNumberGenerator
  ) -> [UInt8] {
    var content = inode.durable
    // In half of the cases everything or nothing arrived, the two most common outcomes.
    let outcome = Int.random(in: 0..<4, using: &random)
    if outcome == 0 { return inode.current }
    if outcome == 1 { return content }
    for change in inode.pending {
      switch change {
      case .truncate(let size):
        if Bool.random(using: &random) { resize(&content, to: size) }
      case .write(let offset, let bytes):
        // The size and the sectors are independent.
        if Bool.random(using: &random), content.count < offset + bytes.count {
          resize(&content, to: offset + bytes.count)
        }
        // A write arrives whole, not at all, or sector by sector, independently of earlier writes.
        let fate = Int.random(in: 0..<3, using: &random)
        if fate == 0 { put(bytes, at: offset, in: &content) }
        if fate < 2 { continue }
        var start = offset
        while start < offset + bytes.count {
          let end = min((start / 512 + 1) * 512, offset + bytes.count)
          let sector = Array(bytes[start - offset..<end - offset])
          switch Int.random(in: 0..<8, using: &random) {
          case 0...3: put(sector, at: start, in: &content)
          case 4:
            // Torn: the beginning is new, and the rest is old.
            let kept = Int.random(in: 0...sector.count, using: &random)
            put(Array(sector[..<kept]), at: start, in: &content)
          case 5:
            // Noise.
            put(sector.map { _ in UInt8.random(in: .min ... .max, using: &random) }, at: start, in: &content)
          default: break
          }
          start = end
        }
      }
    }
    return content
  }

  fileprivate static func put(_ bytes: [UInt8], at offset: Int, in content: inout [UInt8]) {
    guard !bytes.isEmpty else { return }
    if content.count < offset + bytes.count { resize(&content, to: offset + bytes.count) }
    content.replaceSubrange(offset..<offset + bytes.count, with: bytes)
  }

  fileprivate static func resize(_ content: inout [UInt8], to size: Int) {
    if size < content.count {
      content.removeLast(content.count - size)
    } else {
      content += [UInt8](repeating: 0, count: size - content.count)
    }
  }
}

private struct SimulatedDirectory: Directory {
  let disk: SimulatedDisk

  func open(_ name: String, writable: Bool) throws(FileSystemError) -> any File {
    try disk.call(.open) { state, _ -> Result<any File, FileSystemError> in
      guard let inode = state.entries[name] else { return .failure(FileSystemError(ENOENT)) }
      return .success(SimulatedFile(disk: disk, inode: inode))
    }
  }

  func create(_ name: String) throws(FileSystemError) -> any File {
    try disk.call(.create) { state, _ -> Result<any File, FileSystemError> in
      guard state.entries[name] == nil else { return .failure(FileSystemError(EEXIST)) }
      let inode = SimulatedDisk.Inode(state.nextInode)
      state.nextInode += 1
      state.entries[name] = inode
      state.pendingEntries.append(.add(name, inode))
      return .success(SimulatedFile(disk: disk, inode: inode))
    }
  }

  func status(of name: String) throws(FileSystemError) -> FileStatus {
    try disk.call(.status) { state, _ -> Result<FileStatus, FileSystemError> in
      if name == "." {
        return .success(
          FileStatus(device: 1, inode: 0, size: 0, isRegular: false, mode: 0o700, owner: 0))
      }
      guard let inode = state.entries[name] else { return .failure(FileSystemError(ENOENT)) }
      return .success(FileStatus(inode, in: state))
    }
  }

  func rename(_ name: String, to newName: String, replacing: Bool) throws(FileSystemError) {
    try disk.call(.rename) { state, _ -> Result<Void, FileSystemError> in
      guard let inode = state.entries[name] else { return .failure(FileSystemError(ENOENT)) }
      guard replacing || state.entries[newName] == nil else { return .failure(FileSystemError(EEXIST)) }
      state.entries[name] = nil
      state.entries[newName] = inode
      state.pendingEntries.append(.rename(name, to: newName, inode))
      return .success(())
    }
  }

  func remove(_ name: String) throws(FileSystemError) {
    try disk.call(.remove) { state, _ -> Result<Void, FileSystemError> in
      guard state.entries.removeValue(forKey: name) != nil else { return .failure(FileSystemError(ENOENT)) }
      state.pendingEntries.append(.remove(name))
      return .success(())
    }
  }

  func names() throws(FileSystemError) -> [String] {
    try disk.call(.list) { state, _ in .success(state.entries.keys.sorted()) }
  }

  func synchronize() throws(FileSystemError) {
    try disk.call(.synchronizeDirectory) { state, _ -> Result<Void, FileSystemError> in
      if state.omission != .directoryBarrier {
        state.durableEntries = state.entries
        state.pendingEntries = []
      }
      return .success(())
    }
  }

  func watch() throws(FileSystemError) -> any DirectoryWatch { throw FileSystemError(ENOSYS) }
}

// Unchecked: the inode is used only under the disk's lock.
private final class SimulatedFile: File, @unchecked Sendable {
  let disk: SimulatedDisk
  let inode: SimulatedDisk.Inode

  init(disk: SimulatedDisk, inode: SimulatedDisk.Inode) {
    self.disk = disk
    self.inode = inode
  }

  deinit {
    let inode = inode
    let holder = ObjectIdentifier(self)
    disk.withoutCall { inode.lockHolders.remove(holder) }
  }

  func status() throws(FileSystemError) -> FileStatus {
    try disk.call(.status) { state, _ in .success(FileStatus(inode, in: state)) }
  }

  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(FileSystemError) -> Int {
    try disk.call(.read) { _, most -> Result<Int, FileSystemError> in
      let count = max(0, min(buffer.count, most, inode.current.count - offset))
      if count > 0 {
        inode.current.withUnsafeBytes {
          buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[offset..<offset + count]))
        }
      }
      return .success(count)
    }
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(FileSystemError) -> Int {
    let bytes = Array(bytes)
    return try disk.call(.write) { _, most -> Result<Int, FileSystemError> in
      let bytes = Array(bytes.prefix(most))
      SimulatedDisk.put(bytes, at: offset, in: &inode.current)
      inode.pending.append(.write(offset: offset, bytes: bytes))
      return .success(bytes.count)
    }
  }

  func truncate(to size: Int) throws(FileSystemError) {
    try disk.call(.truncate) { _, _ -> Result<Void, FileSystemError> in
      SimulatedDisk.resize(&inode.current, to: size)
      inode.pending.append(.truncate(size: size))
      return .success(())
    }
  }

  func synchronizeData() throws(FileSystemError) {
    // A commit slot is one of the first three pages and is written by itself.
    try synchronize { inode in
      if case .write(let offset, let bytes)? = inode.pending.last, offset < 12_288, bytes.count == 4096 {
        return .slotBarrier
      }
      return .frameBarrier
    }
  }

  func synchronize() throws(FileSystemError) {
    try synchronize { _ in .fileBarrier }
  }

  private func synchronize(_ kind: (SimulatedDisk.Inode) -> SimulatedDisk.Omission) throws(FileSystemError) {
    do throws(FileSystemError) {
      try disk.call(.synchronize) { state, _ -> Result<Void, FileSystemError> in
        let kind = kind(inode)
        inode.barriers += 1
        if state.omission == .promptSlotBarrier, kind == .slotBarrier {
          inode.isDue = true
        } else if state.omission != kind {
          inode.applyPending()
        }
        return .success(())
      }
    } catch {
      // The system marks pages clean that it could not write, so no later barrier writes them. After the end
      // of the process or a power loss nothing was attempted.
      if error.number != EINTR { disk.ifAlive { inode.pending = [] } }
      throw error
    }
  }

  func tryLock(exclusive: Bool) throws(FileSystemError) -> Bool {
    let holder = ObjectIdentifier(self)
    return try disk.call(.lock) { state, _ -> Result<Bool, FileSystemError> in
      if inode.isDue { inode.applyPending() }
      let others = state.omission == .exclusion ? [] : inode.lockHolders.subtracting([holder])
      guard others.isEmpty || (!exclusive && !inode.isExclusive) else { return .success(false) }
      inode.lockHolders.insert(holder)
      inode.isExclusive = exclusive
      return .success(true)
    }
  }

  func unlock() throws(FileSystemError) {
    let holder = ObjectIdentifier(self)
    try disk.call(.unlock) { _, _ -> Result<Void, FileSystemError> in
      inode.lockHolders.remove(holder)
      return .success(())
    }
  }
}

extension SimulatedDisk {
  /// Changes the state without a call, which cannot fail.
  fileprivate func withoutCall(_ body: () -> Void) { withState { _ in body() } }

  /// The same, unless the process has ended or the power has failed.
  fileprivate func ifAlive(_ body: () -> Void) { withState { if !$0.isDead { body() } } }
}

extension FileStatus {
  fileprivate init(_ inode: SimulatedDisk.Inode, in state: SimulatedDisk.State) {
    self.init(
      device: 1, inode: inode.number, size: inode.current.count, isRegular: true, mode: 0o600, owner: 0,
      links: state.entries.values.count { $0 === inode })
  }
}
