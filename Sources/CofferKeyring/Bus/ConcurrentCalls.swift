#if Keyring
internal import CLibsecret

extension BusConnection {
  /// The largest number of calls without an answer. More do not make a service faster.
  private static let maximumPending = 64

  private final class Answers {
    var pending = 0
    var arrived: [(index: Int, result: Result<Variant, ServiceFailure>)] = []
  }

  /// One call, which GLib holds until the answer arrives.
  private final class Call {
    let index: Int
    let deadline: Deadline
    let answers: Answers

    init(_ index: Int, _ deadline: Deadline, _ answers: Answers) {
      self.index = index
      self.deadline = deadline
      self.answers = answers
    }

    static let finish: GAsyncReadyCallback = { connection, result, pointer in
      guard let connection, let pointer else { return }
      let call = Unmanaged<Call>.fromOpaque(pointer).takeRetainedValue()
      var error: UnsafeMutablePointer<GError>?
      let answer = g_dbus_connection_call_finish(
        OpaquePointer(UnsafeMutableRawPointer(connection)), result, &error)
      call.answers.pending -= 1
      let outcome =
        answer.map { Result.success(Variant(owning: $0)) }
        ?? .failure(ServiceFailure(consuming: error, call.deadline))
      call.answers.arrived.append((call.index, outcome))
    }
  }

  /// Makes calls of one interface, and passes each answer to `body`, in the order of arrival. Each call has a path, a method
  /// and a tuple of arguments. `deadline` is called before each call. Further calls are sent before the first answers arrive,
  /// so that the service need not wait for this process between two calls.
  ///
  /// Returns when every call was answered. If `body` throws, the calls without an answer are cancelled.
  func call(
    _ destination: String, _ interface: String,
    each calls: [(path: String, method: String, arguments: Variant)], by deadline: () -> Deadline,
    _ body: (Int, Result<Variant, ServiceFailure>) throws(ServiceFailure) -> Void
  ) throws(ServiceFailure) {
    if calls.isEmpty { return }
    let context = EventContext()
    let answers = Answers()
    let cancellable = g_cancellable_new()
    defer { g_object_unref(cancellable) }
    try context.asCurrent { () throws(ServiceFailure) in
      defer {
        if answers.pending > 0 {
          g_cancellable_cancel(cancellable)
          while answers.pending > 0 { context.iterate(timeout: nil) }
          // An answer that arrives during the cancellation leaves work to the context, which keeps the connection.
          deliverLast(on: context)
        }
      }
      var next = 0
      while next < calls.count || answers.pending > 0 {
        while next < calls.count, answers.pending < Self.maximumPending {
          let (path, method, arguments) = calls[next]
          let call = Call(next, deadline(), answers)
          let timeout = try call.deadline.remainingMilliseconds()
          answers.pending += 1
          g_dbus_connection_call(
            raw, destination, path, interface, method, arguments.raw, nil, G_DBUS_CALL_FLAGS_NO_AUTO_START,
            timeout, cancellable, Call.finish, Unmanaged.passRetained(call).toOpaque())
          next += 1
        }
        context.iterate(timeout: nil)
        let arrived = answers.arrived
        answers.arrived = []
        for answer in arrived { try body(answer.index, answer.result) }
      }
    }
  }
}
#endif
