internal import CofferCore
internal import CofferVaultFormat
internal import Synchronization

/// The newest snapshot of a vault, which the session and the readers beside it share. Thread-safe.
///
/// A reader takes no lock, asks for no credential and writes nothing, so it does not wait for another thread's change.
/// It reads only while the path names the open file. Everything else is left to the session.
final class SharedSnapshot: Sendable {
  private struct State {
    /// The newest state of the open file. `nil`: the session must open the file.
    var snapshot: VaultSnapshot?
    /// The newest state that was accepted. It stays when the file is closed, so that an older one is refused.
    var accepted: SeenState?
    /// The changes that observers have not been told of yet.
    var changes: [SecretChange] = []
    /// Whether another program's change was accepted that may not be in the records of known vaults.
    var mayBeUnrecorded = false
  }

  private let state = Mutex(State())

  /// The newest state of the open file, or `nil` if no file is open.
  var current: VaultSnapshot? { state.withLock { $0.snapshot } }
  var accepted: SeenState? { state.withLock { $0.accepted } }
  /// Whether the session should tell observers or record what was read.
  var hasNews: Bool { state.withLock { $0.mayBeUnrecorded || !$0.changes.isEmpty } }

  // MARK: For the session

  /// Publishes the first snapshot of a file, which the session has admitted or which a person trusts. Between the state
  /// that was accepted before and another one, any secret may have changed.
  func publish(_ snapshot: VaultSnapshot, _ accepted: SeenState) {
    state.withLock { state in
      if let former = state.accepted, former.record.checkpoint != accepted.record.checkpoint {
        state.changes.append(SecretChange(nil))
      }
      (state.snapshot, state.accepted, state.mayBeUnrecorded) = (snapshot, accepted, false)
    }
    snapshot.file.storage.keepCopy()
  }

  /// Closes the file. `accepted` is a state of another file that is in its place now.
  func close(accepting accepted: SeenState? = nil) {
    let former = state.withLock { state in
      defer { state.snapshot = nil }
      if let accepted { state.accepted = accepted }
      return state.snapshot
    }
    withExtendedLifetime(former) {}
  }

  /// Everything up to `checkpoint` is recorded.
  func recorded(_ checkpoint: Checkpoint) {
    state.withLock { state in
      if state.accepted?.record.checkpoint == checkpoint { state.mayBeUnrecorded = false }
    }
  }

  /// Adds changes that observers are to be told of.
  func note(_ changes: [SecretChange]) { state.withLock { $0.changes += changes } }

  /// The changes since they were last taken.
  func takeChanges() -> [SecretChange] {
    state.withLock { state in
      defer { state.changes = [] }
      return state.changes
    }
  }

  // MARK: Reading

  /// Reads the later commits, and returns the newest snapshot. Returns `nil` if no file is open, or if the path names
  /// another file. That is not checked if the open file is `checked`, which the path named just now. Throws what
  /// ``VaultSnapshot/refreshed()`` throws, and `.denied`.
  func refreshed(checked: VaultFile? = nil) throws(SecretError) -> VaultSnapshot? {
    while let snapshot = current {
      let isChecked = snapshot.file.storage.identity == checked?.storage.identity
      let storage = isChecked ? snapshot.file.storage : try snapshot.file.storage.current()
      guard let storage else { return nil }
      if let (newer, changed) = try snapshot.refreshed(in: storage) {
        let isLater = newer.state != snapshot.state
        if advance(from: snapshot, to: newer, changed.map { SecretChange($0) }, mayBeUnrecorded: isLater) {
          return newer
        }
      } else if current === snapshot {
        return snapshot
      }
      // Another thread was faster. What it has accepted may be newer.
    }
    return nil
  }

  /// Publishes a later state of the open file. Returns `false` and does nothing if `former` is not the newest snapshot
  /// any more: then another thread has published this state or a later one, with its changes.
  @discardableResult
  func advance(
    from former: VaultSnapshot, to snapshot: VaultSnapshot, _ changes: [SecretChange],
    mayBeUnrecorded: Bool = false
  ) -> Bool {
    let isNext = state.withLock { state in
      guard state.snapshot === former else { return false }
      state.snapshot = snapshot
      if var record = state.accepted?.record {
        record.checkpoint = snapshot.state.checkpoint
        state.accepted = SeenState(record, snapshot.keys)
      }
      state.changes += changes
      if mayBeUnrecorded { state.mayBeUnrecorded = true }
      return true
    }
    if isNext { snapshot.file.storage.keepCopy() }
    return isNext
  }

  /// Runs `body` on the current state of the vault. Returns `nil` if the session must do that: the vault is not open,
  /// the path names another file, a check fails or may fail because a commit is being written, or `body` throws. Throws
  /// if an engine is away: the session would only ask it again.
  func read<R: ~Copyable>(_ body: (VaultSnapshot) throws(SecretError) -> R) throws(SecretError) -> R? {
    do throws(SecretError) {
      guard let snapshot = try refreshed(), !snapshot.slots.isRecovered else { return nil }
      return try body(snapshot)
    } catch {
      if [.unavailable, .timedOut].contains(error.code) { throw error }
      return nil
    }
  }
}
