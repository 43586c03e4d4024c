internal import CofferCore
internal import Synchronization

/// A change of a value that is stored later. Thread-safe.
final class DelayedSave: Sendable {
  final class Waiting: Sendable {
    /// The value in guarded memory, or `nil` for a removal.
    let value: EncodedValue?
    fileprivate init(_ value: EncodedValue?) { self.value = value }
  }

  let delay: Duration
  private let state = Mutex<(waiting: Waiting?, failure: SecretError?)>((nil, nil))
  /// Held while a change is stored, so that an earlier change does not replace a later one.
  private let saving = DeadlineLock()

  init(delay: Duration) { self.delay = delay }

  var waiting: Waiting? { state.withLock { $0.waiting } }

  /// The error of the last attempt to store the change, or `nil` if that succeeded.
  var failure: SecretError? { state.withLock { $0.failure } }

  func put(_ value: EncodedValue?) { state.withLock { $0.waiting = Waiting(value) } }

  /// Stores the waiting change, if there is one, with `save`. The change keeps waiting if `save` throws.
  func flush(_ save: (EncodedValue?) throws(SecretError) -> Void) throws(SecretError) {
    try saving.withLock(timeout: ValueHub.timeout) { () throws(SecretError) in
      guard let waiting else { return }
      do throws(SecretError) {
        try save(waiting.value)
      } catch {
        state.withLock { $0.failure = error }
        throw error
      }
      state.withLock { state in
        state.failure = nil
        if state.waiting === waiting { state.waiting = nil }
      }
    }
  }
}
