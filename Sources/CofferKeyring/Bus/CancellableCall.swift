#if Keyring
internal import CLibsecret
internal import CofferCore
internal import Dispatch
internal import Synchronization

/// A call of GLib or libsecret that has no timeout of its own. The call runs on a thread of its own, and the caller may
/// do something else before it waits for the result.
///
/// That thread blocks all signals, and so do the threads that GLib starts from it, such as GDBus's worker. If one of
/// them did not, a signal that the program blocks could end the process, and a `SIGCHLD` that the program waits for
/// could be lost. Every connection is therefore made by such a call.
final class CancellableCall<R>: Sendable {
  private final class State: @unchecked Sendable {  // `result` is set before the semaphore is signalled
    let cancellable: UnsafeMutablePointer<GCancellable> = g_cancellable_new()
    let ended = DispatchSemaphore(value: 0)
    let isCancelledOnRelease = Atomic(true)
    var result: Result<R, ServiceFailure> = .failure(.failed("the system has no thread for the call"))

    deinit { g_object_unref(cancellable) }
  }

  private let state: State

  /// Starts `body`, which must pass the cancellable to each call that waits, and throws `.timedOut` if cancelled.
  init(_ body: @escaping @Sendable (UnsafeMutablePointer<GCancellable>) throws(ServiceFailure) -> R) {
    let state = State()
    self.state = state
    let result = startThread {
      state.result = Result { () throws(ServiceFailure) in try body(state.cancellable) }
      state.isCancelledOnRelease.store(false, ordering: .releasing)
      state.ended.signal()
    }
    if result != 0 { state.ended.signal() }
  }

  // A call that has ended is not cancelled: GDBus may still use the cancellable, and would never free the connection
  // and its context.
  deinit {
    if state.isCancelledOnRelease.load(ordering: .acquiring) { g_cancellable_cancel(state.cancellable) }
  }

  /// Lets the call end by itself, even if this object is released first. For a call that no longer waits for anything.
  func letEnd() { state.isCancelledOnRelease.store(false, ordering: .releasing) }

  /// Waits for the end of the call, and cancels it at the deadline. Waits for the end of a cancelled call for at most
  /// 100 milliseconds: GDBus does not cancel its first call to a bus, and waits 25 seconds for the answer.
  func result(by deadline: Deadline) throws(ServiceFailure) -> R {
    let timeout = DispatchTimeInterval.milliseconds(Int(try deadline.remainingMilliseconds()))
    if state.ended.wait(timeout: .now() + timeout) == .timedOut {
      g_cancellable_cancel(state.cancellable)
      if state.ended.wait(timeout: .now() + .milliseconds(100)) == .timedOut { throw deadline.failure }
    }
    state.ended.signal()  // for the next caller
    do throws(ServiceFailure) { return try state.result.get() } catch .timedOut { throw deadline.failure }
  }
}
#endif
