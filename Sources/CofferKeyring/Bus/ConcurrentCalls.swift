#if Keyring
internal import CLibsecret

/// Makes calls of one interface. It sends further calls before the first answers arrive, so that the service need not wait
/// for this process between two calls.
struct ConcurrentCalls {
  private let bus: BusConnection
  private let name: String
  private let interface: String
  private let cancellable: UnsafeMutablePointer<GCancellable>?

  /// The largest number of calls without an answer. More do not make a service faster.
  private static let maximumPending = 64

  /// Cancelling `cancellable` ends the calls that have no answer yet.
  init(
    _ bus: BusConnection, _ name: String, _ interface: String,
    _ cancellable: UnsafeMutablePointer<GCancellable>? = nil
  ) {
    self.bus = bus
    self.name = name
    self.interface = interface
    self.cancellable = cancellable
  }

  private final class Answers {
    var pending = 0
    var arrived: [(index: Int, result: Result<Variant, ServiceFailure>)] = []
  }

  /// One call: what its answer belongs to. GLib holds a reference until the answer arrives.
  private final class Call {
    let index: Int
    let whole: Duration
    let answers: Answers

    init(_ index: Int, _ whole: Duration, _ answers: Answers) {
      self.index = index
      self.whole = whole
      self.answers = answers
    }
  }

  /// Makes the calls and passes each answer to `body`, in the order of arrival. Each call has a path, a method and a tuple
  /// of arguments. `allowed` returns the time that the next call has, and the timeout to name in an error.
  ///
  /// Runs `whenQueued` after each call that GDBus has taken and will send. Returns when every call was answered. If `body`
  /// throws, the calls without an answer are cancelled.
  func run(
    _ calls: [(path: String, method: String, arguments: Variant)],
    _ allowed: () throws(ServiceFailure) -> (time: Duration, whole: Duration),
    whenQueued: () -> Void = {},
    _ body: (Int, Result<Variant, ServiceFailure>) throws(ServiceFailure) -> Void
  ) throws(ServiceFailure) {
    if calls.isEmpty { return }
    let context = EventContext()
    let answers = Answers()
    let cancellable = cancellable ?? g_cancellable_new()
    defer { if self.cancellable == nil { g_object_unref(cancellable) } }
    try context.asCurrent { () throws(ServiceFailure) in
      defer {
        if answers.pending > 0 {
          g_cancellable_cancel(cancellable)
          while answers.pending > 0 { context.iterate(timeout: nil) }
          // An answer that arrives during the cancellation leaves work to the context, which keeps the connection.
          bus.deliverLast(on: context)
        }
      }
      var next = 0
      while next < calls.count || answers.pending > 0 {
        while next < calls.count, answers.pending < Self.maximumPending {
          let (time, whole) = try allowed()
          start(calls[next], timeout: time, Call(next, whole, answers), cancellable)
          next += 1
          whenQueued()
        }
        context.iterate(timeout: nil)
        let arrived = answers.arrived
        answers.arrived = []
        for answer in arrived { try body(answer.index, answer.result) }
      }
    }
  }

  private func start(
    _ target: (path: String, method: String, arguments: Variant), timeout: Duration, _ call: Call,
    _ cancellable: UnsafeMutablePointer<GCancellable>?
  ) {
    call.answers.pending += 1
    g_dbus_connection_call(
      bus.raw, name, target.path, interface, target.method, target.arguments.raw, nil,
      G_DBUS_CALL_FLAGS_NO_AUTO_START,
      BusConnection.milliseconds(timeout), cancellable,
      { connection, result, pointer in
        guard let connection, let pointer else { return }
        let call = Unmanaged<Call>.fromOpaque(pointer).takeRetainedValue()
        var error: UnsafeMutablePointer<GError>?
        let answer = g_dbus_connection_call_finish(
          OpaquePointer(UnsafeMutableRawPointer(connection)), result, &error)
        call.answers.pending -= 1
        call.answers.arrived.append(
          (
            call.index,
            answer.map { .success(Variant(owning: $0)) }
              ?? .failure(ServiceFailure(consuming: error, timeout: call.whole))
          ))
      },
      Unmanaged.passRetained(call).toOpaque())
  }
}
#endif
