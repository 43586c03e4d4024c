#if Keyring
internal import CLibsecret
internal import CofferCore
internal import Dispatch
internal import Synchronization

/// A call of GLib or libsecret that has no timeout of its own. It runs on a thread of its own, and the caller may do
/// something else before it waits for the result.
///
/// That thread receives no signals, and so neither do the threads that GLib starts from it, GDBus's worker among them. On a
/// thread that does not block it, a signal that the program blocks would end the process, and a `SIGCHLD` that the program
/// waits for would be lost. Every connection is therefore made by such a call.
final class CancellableCall<R>: Sendable {
  typealias Body = @Sendable (UnsafeMutablePointer<GCancellable>) throws(ServiceFailure) -> R

  private final class State: @unchecked Sendable {  // `result` is set before the semaphore is signalled
    let cancellable: UnsafeMutablePointer<GCancellable> = g_cancellable_new()
    let ended = DispatchSemaphore(value: 0)
    let hasEnded = Atomic(false)
    var result: Result<R, ServiceFailure>

    init() { result = .failure(.failed("the system has no thread for the call")) }
    deinit { g_object_unref(cancellable) }
  }

  private let state: State
  /// Whether there is a thread for the call.
  let isStarted: Bool

  /// Starts `body`, which must pass the cancellable to each call that waits. It throws `.timedOut` if it was cancelled.
  init(_ body: @escaping Body) {
    let state = State()
    self.state = state
    let failure = startThread {
      state.result = Result { () throws(ServiceFailure) in try body(state.cancellable) }
      state.hasEnded.store(true, ordering: .releasing)
      state.ended.signal()
    }
    isStarted = failure == 0
    if !isStarted { state.ended.signal() }
  }

  /// GDBus may still look at the cancellable of a call that has ended, and would then keep the connection and a context for
  /// good.
  deinit { if !state.hasEnded.load(ordering: .acquiring) { g_cancellable_cancel(state.cancellable) } }

  /// Waits for the end of the call, for at most `timeout`. To be called once.
  func result(within timeout: Duration) throws(ServiceFailure) -> R {
    if state.ended.wait(timeout: .now() + .milliseconds(Int(BusConnection.milliseconds(timeout))))
      == .timedOut
    {
      g_cancellable_cancel(state.cancellable)
      state.ended.wait()
    }
    do throws(ServiceFailure) { return try state.result.get() } catch .timedOut { throw .timedOut(timeout) }
  }
}
#endif
