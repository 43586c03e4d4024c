internal import CofferCore
internal import CofferVaultFormat
internal import Glibc
internal import Synchronization

/// Reads a vault beside the session that has it open, so that a read does not wait for another thread's change.
///
/// A reader is a view of the file that the session has open. It uses the session's keys, asks for no credential, takes
/// no lock and writes nothing. It reads only while the path names that file, and accepts no state that is older than
/// what the session or another reader has seen before. Everything else is left to the session. Thread-safe.
final class VaultReaders: Sendable {
  /// A state of the vault that was accepted.
  struct Seen: Sendable {
    let masterCommitment: [UInt8]
    let checkpoint: Checkpoint

    func isLater(than other: Seen) -> Bool { checkpoint.sequence > other.checkpoint.sequence }
    func hasMasterKey(of other: Seen) -> Bool { masterCommitment == other.masterCommitment }
  }

  /// The file that the session has open.
  private final class OpenFile: @unchecked Sendable {  // the condition of `file` is used by no thread
    let file: VaultFile
    let keys: DerivedKeys
    /// The number of decisions to trust the vault as it was, when the file was opened.
    let decisions: Int

    init(_ vault: UnlockedVault, decisions: Int) {
      (file, keys, self.decisions) = (vault.file.copy(), vault.keys, decisions)
    }
  }

  /// A view of the open file that one thread uses at a time.
  private struct Reader: @unchecked Sendable {
    let vault: UnlockedVault
  }

  private struct State {
    var open: OpenFile?
    var idle: [Reader] = []
    var seen: Seen?
    var decisions = 0
  }

  private let state = Mutex(State())
  /// As many as can run at once. Each keeps an index of the vault.
  private static let maximumIdle = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))

  // MARK: For the session

  /// The newest state that was seen.
  var seen: Seen? { state.withLock { $0.seen } }

  /// Reads the file of `vault` from now on, which the session has admitted. `nil`: there is nothing to read.
  func follow(_ vault: UnlockedVault?) {
    learn(vault.map { Seen($0) })
    let dropped = state.withLock { state in
      defer { state.idle = [] }
      state.open = vault.map { OpenFile($0, decisions: state.decisions) }
      return state.idle
    }
    withExtendedLifetime(dropped) {}
  }

  /// Accepts nothing older than `new` from now on, which the session has seen.
  func learn(_ new: Seen?) {
    guard let new else { return }
    state.withLock { state in
      if let seen = state.seen, !new.isLater(than: seen), new.hasMasterKey(of: seen) { return }
      state.seen = new
    }
  }

  /// Forgets what was seen. A read that has begun before is not remembered either.
  func forget() {
    state.withLock { state in
      state.seen = nil
      state.decisions += 1
    }
  }

  // MARK: Reading

  /// Runs `body` on the current state of the vault. Returns `nil` if the session must do that: the vault is not open, the
  /// path names another file, a check fails or may fail because a commit is being written, or `body` throws.
  func read<R: ~Copyable>(_ body: (UnlockedVault) throws(SecretError) -> R) -> R? {
    let (open, idle, seen) = state.withLock { ($0.open, $0.idle.popLast(), $0.seen) }
    guard let open, let seen else { return nil }
    do throws(SecretError) {
      let vault = if let idle { idle.vault } else { try UnlockedVault(open.file.copy(), keys: open.keys) }
      guard try vault.file.isCurrent() else { return nil }
      _ = try vault.refresh()
      guard !vault.slots.isRecovered, vault.mayFollow(seen) else { return nil }
      remember(vault, of: open)
      let result = try body(vault)
      giveBack(Reader(vault: vault), of: open)
      return result
    } catch {
      return nil
    }
  }

  /// Before a client gets anything of this state.
  private func remember(_ vault: UnlockedVault, of open: OpenFile) {
    let new = Seen(vault)
    state.withLock { state in
      guard let seen = state.seen, state.decisions == open.decisions, new.isLater(than: seen),
        new.hasMasterKey(of: seen)
      else { return }
      state.seen = new
    }
  }

  private func giveBack(_ reader: Reader, of open: OpenFile) {
    state.withLock { state in
      if state.open === open, state.idle.count < Self.maximumIdle { state.idle.append(reader) }
    }
  }
}

extension VaultReaders.Seen {
  /// The state of `vault`.
  init(_ vault: UnlockedVault) {
    self.init(masterCommitment: vault.file.header.masterCommitment, checkpoint: vault.state.checkpoint)
  }
}
