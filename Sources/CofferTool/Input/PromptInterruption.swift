#if Keyring
internal import Coffer
internal import Dispatch
internal import Glibc
internal import Synchronization

/// Dismisses the keyring's prompt when a signal ends this process. Otherwise the prompt would stay on the screen, and
/// would unlock the keyring for nobody. The signal is delivered when the prompt has been dismissed.
final class PromptInterruption: Sendable {
  private let signals: BlockedSignals
  /// Connected sockets, of which one is closed when the wait is over.
  private let over: (reading: Int32, writing: Int32)
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
    do throws(SecretError) { signals = try BlockedSignals(BlockedSignals.interruptions) } catch { return nil }
    var ends: [Int32] = [-1, -1]
    if socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) != 0 { return nil }
    over = (ends[0], ends[1])
    if startThread({ self.watch(cancelPrompts) }) != 0 {
      close(over.writing)
      return nil
    }
  }

  deinit { close(over.reading) }

  private func watch(_ cancelPrompts: () -> Void) {
    do throws(SecretError) {
      if let arrival = try signals.wait(orReadable: [over.reading]).arrival {
        arrived.store(arrival.signal, ordering: .releasing)
        cancelPrompts()
      }
    } catch {
      // The prompt stays until somebody answers it.
    }
    threadEnded.signal()
  }

  /// Call it on the thread that created this. Ends the process if a signal has arrived, unless the caller blocks it.
  private func end() {
    close(over.writing)
    threadEnded.wait()
    let signal = arrived.load(ordering: .acquiring)
    if signal == 0 { return }
    var previous = signals.previous
    if sigismember(&previous, signal) == 1 { raise(signal) } else { BlockedSignals.deliver(signal) }
  }
}
#endif
