internal import CofferSystem
import Foundation

/// The directory of a simulated disk: all names are in one.
struct SimulatedDirectory: Directory {
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
          FileStatus(device: 1, inode: 0, size: 0, isRegular: false, mode: 0o700, owner: 0, links: 1))
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
      state.barriers += 1
      if state.omission != .directoryBarrier {
        state.durableEntries = state.entries
        state.pendingEntries = []
      }
      return .success(())
    }
  }

  func watch(
    _ name: String, _ onChange: @escaping @Sendable () -> Void
  ) throws(FileSystemError) -> any DirectoryWatch { throw FileSystemError(ENOSYS) }
}

// Unchecked: the inode is used only under the disk's lock.
/// An open file of a simulated disk.
final class SimulatedFile: File, @unchecked Sendable {
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
    try disk.call(.read) { state, most -> Result<Int, FileSystemError> in
      let count = max(0, min(buffer.count, most, inode.current.count - offset))
      state.transferred += count
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
    return try disk.call(.write) { state, most -> Result<Int, FileSystemError> in
      let bytes = Array(bytes.prefix(most))
      state.transferred += bytes.count
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

  func setMode(_ mode: UInt32) throws(FileSystemError) {}

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
        state.barriers += 1
        if state.omission == .promptSlotBarrier, kind == .slotBarrier {
          inode.isDue = true
        } else if state.omission != kind {
          inode.applyPending()
        }
        return .success(())
      }
    } catch {
      // After a failed barrier, the system treats the unwritten pages as clean, and no later barrier writes them. If
      // the process has ended or the power has failed, nothing was attempted.
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

extension FileStatus {
  fileprivate init(_ inode: SimulatedDisk.Inode, in state: SimulatedDisk.State) {
    self.init(
      device: 1, inode: inode.number, size: inode.current.count, isRegular: true, mode: 0o600, owner: 0,
      links: state.entries.values.count { $0 === inode })
  }
}
