#if Keyring
internal import CLinux
internal import Coffer
internal import CofferSystem
internal import Dispatch
internal import CofferLibc
internal import Synchronization

/// Dismisses the keyring's prompt when a signal ends this process. Otherwise the prompt would stay on the screen
/// although nothing waits for its answer. The signal is delivered after the prompt has been dismissed.
final class PromptInterruption: Sendable {
  private let signals: BlockedSignals
  /// Can be read when the wait is over.
  private let over: Descriptor
  private let arrived = Atomic<Int32>(0)
  private let threadEnded = DispatchSemaphore(value: 0)

  static func dismissPrompts(of backend: KeyringBackend) {
    backend.observePrompts { [weak backend] in
      guard let backend, let wait = Self(cancelPrompts: backend.cancelPrompts) else { return {} }
      return { wait.end() }
    }
  }

  /// `nil` if the system cannot do this: a signal then ends the process at once.
  private init?(cancelPrompts: @escaping @Sendable () -> Void) {
    do {
      over = try Descriptor(opened: coffer_eventfd())
      signals = try BlockedSignals(BlockedSignals.interruptions)
    } catch { return nil }
    if startThread({ self.watch(cancelPrompts) }) != 0 { return nil }
  }

  private func watch(_ cancelPrompts: () -> Void) {
    do throws(SecretError) {
      if let arrival = try signals.wait(orReadable: [over.number]).arrival {
        arrived.store(arrival.signal, ordering: .releasing)
        cancelPrompts()
      }
    } catch {}  // the prompt stays until somebody answers it
    threadEnded.signal()
  }

  /// Call it on the thread that ran `init`. Ends the process if a signal has arrived, unless the caller blocks it.
  private func end() {
    eventfd_write(over.number, 1)
    threadEnded.wait()
    let signal = arrived.load(ordering: .acquiring)
    if signal == 0 { return }
    var previous = signals.previous
    if sigismember(&previous, signal) == 1 { raise(signal) } else { BlockedSignals.deliver(signal) }
  }
}
#endif
