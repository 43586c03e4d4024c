#if Keyring
internal import CLibsecret

extension BusConnection {
  /// The largest number of calls that wait for an answer. A service does not get faster with more.
  private static let maximumPending = 64

  /// One call, which GLib holds until the answer arrives.
  private final class Call {
    let deadline: Deadline
    let body: (Result<Variant, ServiceFailure>) -> Void

    init(_ deadline: Deadline, _ body: @escaping (Result<Variant, ServiceFailure>) -> Void) {
      self.deadline = deadline
      self.body = body
    }

    static let finish: GAsyncReadyCallback = { connection, result, pointer in
      guard let connection, let pointer else { return }
      let call = Unmanaged<Call>.fromOpaque(pointer).takeRetainedValue()
      var error: UnsafeMutablePointer<GError>?
      let answer = g_dbus_connection_call_finish(OpaquePointer(UnsafeMutableRawPointer(connection)), result, &error)
      call.body(
        answer.map { .success(Variant(owning: $0)) }
          ?? .failure(ServiceFailure(consuming: error, call.deadline)))
    }
  }

  /// Makes calls of one interface, and passes each answer to `body`, in the order of arrival. Each call has a path, a
  /// method and a tuple of arguments. `deadline` is called before each call. Further calls are sent before the first
  /// answers arrive, so that the service need not wait for this process between two calls.
  ///
  /// Returns when every call was answered. If `body` throws, the calls without an answer are cancelled.
  func call(
    _ destination: String, _ interface: String,
    each calls: [(path: String, method: String, arguments: Variant)], by deadline: () -> Deadline,
    _ body: (Int, Result<Variant, ServiceFailure>) throws(ServiceFailure) -> Void
  ) throws(ServiceFailure) {
    if calls.isEmpty { return }
    let context = EventContext()
    var pending = 0
    var arrived: [(index: Int, result: Result<Variant, ServiceFailure>)] = []
    let cancellable = g_cancellable_new()
    defer { g_object_unref(cancellable) }
    try context.asCurrent { () throws(ServiceFailure) in
      defer {
        if pending > 0 {
          g_cancellable_cancel(cancellable)
          while pending > 0 { context.iterate(timeout: nil) }
          // An answer that arrives during the cancellation is still queued on the context, and keeps the connection.
          deliverLast(on: context)
        }
      }
      var next = 0
      while next < calls.count || pending > 0 {
        while next < calls.count, pending < Self.maximumPending {
          let (path, method, arguments) = calls[next]
          let index = next
          let call = Call(deadline()) { result in
            pending -= 1
            arrived.append((index, result))
          }
          let timeout = try call.deadline.remainingMilliseconds()
          pending += 1
          g_dbus_connection_call(
            raw, destination, path, interface, method, arguments.raw, nil, G_DBUS_CALL_FLAGS_NO_AUTO_START,
            timeout, cancellable, Call.finish, Unmanaged.passRetained(call).toOpaque())
          next += 1
        }
        context.iterate(timeout: nil)
        let answers = arrived
        arrived = []
        for answer in answers { try body(answer.index, answer.result) }
      }
    }
  }
}
#endif
