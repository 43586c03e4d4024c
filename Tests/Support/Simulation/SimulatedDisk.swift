package import CofferSystem
import Foundation

/// A disk in memory that distinguishes what has reached the platter from what is only in the system's cache.
///
/// Every call is counted. The power fails at a chosen call: that call and all later ones throw, and
/// ``afterPowerLoss(_:)`` returns a disk with content that may be left. After the last barrier, each 512-byte sector of
/// each write, each change of a size and each change of a directory entry is kept, lost or torn independently.
/// Thread-safe.
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
    /// The barrier after a commit slot takes effect when the file is locked next, after the change is acknowledged.
    case promptSlotBarrier
    /// A lock excludes no other process.
    case exclusion
  }

  final class Inode {
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

  enum Change {
    case write(offset: Int, bytes: [UInt8])
    case truncate(size: Int)
  }

  enum EntryChange {
    case add(String, Inode)
    case remove(String)
    /// Includes the inode, because the target of the entry does not depend on which changes before it were kept.
    case rename(String, to: String, Inode)
  }

  struct State {
    var entries: [String: Inode] = [:]
    var durableEntries: [String: Inode] = [:]
    var pendingEntries: [EntryChange] = []
    var nextInode: UInt64 = 1
    var calls = 0
    /// The bytes that were read and written.
    var transferred = 0
    var barriers = 0
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

  init(_ initial: State) { state = initial }

  func withState<R>(_ body: (inout State) -> R) -> R {
    lock.lock()
    defer { lock.unlock() }
    return body(&state)
  }

  package var calls: Int { withState { $0.calls } }
  /// The bytes that were read and written so far.
  package var transferred: Int { withState { $0.transferred } }
  /// The number of barriers so far, of files and of the directory.
  package var barriers: Int { withState { $0.barriers } }
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
  /// Makes an operation fail from now on. A rename that fails with `EBUSY` stands for a file that is a mount point.
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

  /// A file that was not named from the root on is in the working directory, wherever that is.
  package func status(ofPath path: String) throws(FileSystemError) -> FileStatus {
    let names = withState { $0.entries.keys.filter { "/\(path)".hasSuffix("/\($0)") } }
    let name = names.max { $0.utf8.count < $1.utf8.count }
    return try SimulatedDirectory(disk: self).status(of: name ?? path)
  }

  /// Counts a call and runs it, unless the power is off or the call fails. `body` receives the largest number of bytes
  /// that it may transfer.
  func call<R>(
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
}

extension SimulatedDisk {
  /// Changes the state without a simulated call, so that no fault or power loss can occur.
  func withoutCall(_ body: () -> Void) { withState { _ in body() } }

  /// Changes the state without a call, unless the process has ended or the power has failed.
  func ifAlive(_ body: () -> Void) { withState { if !$0.isDead { body() } } }
}
