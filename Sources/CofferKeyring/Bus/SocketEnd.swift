#if Keyring
internal import CLibsecret
internal import CofferLibc

/// One end of a pair of connected sockets, for D-Bus messages within this process. Closed by `deinit`.
final class SocketEnd: Sendable {
  private let number: Int32
  private static let noDescriptors = GDBusCapabilityFlags(rawValue: 0)

  private init(_ number: Int32) { self.number = number }

  deinit { if number >= 0 { close(number) } }

  /// Two ends that are connected with each other. If the system has no descriptors left, every use of them fails.
  static func pair() -> (SocketEnd, SocketEnd) {
    var numbers: [Int32] = [-1, -1]
    let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
    _ = socketpair(AF_UNIX, type, 0, &numbers)
    return (SocketEnd(numbers[0]), SocketEnd(numbers[1]))
  }

  /// A connection of GDBus over this end, without a bus. The connection has a descriptor of its own.
  ///
  /// The connection keeps `otherEnd` open, because GDBus's thread may be the last to release the connection. Otherwise,
  /// the connection would report the loss of its other end to a context that no thread iterates, and neither would ever
  /// be freed.
  func connection(
    with otherEnd: SocketEnd, _ cancellable: UnsafeMutablePointer<GCancellable>
  ) throws(ServiceFailure) -> OpaquePointer {
    var error: UnsafeMutablePointer<GError>?
    let copy = fcntl(number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
    guard copy >= 0 else { throw .failed("this process may not open more files") }
    guard let socket = g_socket_new_from_fd(copy, &error) else {
      close(copy)
      throw ServiceFailure(consuming: error)
    }
    defer { g_object_unref(socket) }
    let stream = g_socket_connection_factory_create_connection(socket)
    defer { g_object_unref(stream) }
    let flags = GDBusConnectionFlags(rawValue: 0)
    let connection = stream.flatMap {
      $0.withMemoryRebound(to: GIOStream.self, capacity: 1) {
        g_dbus_connection_new_sync($0, nil, flags, nil, cancellable, &error)
      }
    }
    guard let connection else { throw ServiceFailure(consuming: error) }
    let object = UnsafeMutableRawPointer(connection).assumingMemoryBound(to: GObject.self)
    g_object_set_data_full(object, "coffer-other-end", Unmanaged.passRetained(otherEnd).toOpaque()) {
      if let otherEnd = $0 { Unmanaged<SocketEnd>.fromOpaque(otherEnd).release() }
    }
    return connection
  }

  /// Returns the next message, or `nil` if the other end is closed.
  func receive(by deadline: Deadline) throws(ServiceFailure) -> Message? {
    if number < 0 { return nil }
    var bytes: [UInt8] = []
    // The first 16 bytes contain the length.
    var wanted = 16
    while bytes.count < wanted {
      var event = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
      if poll(&event, 1, try deadline.remainingMilliseconds()) == 0 { throw deadline.failure }
      var part = [UInt8](repeating: 0, count: wanted - bytes.count)
      let count = read(number, &part, part.count)
      if count < 0 && (errno == EINTR || errno == EAGAIN) { continue }
      if count <= 0 { return nil }
      bytes += part[..<count]
      if bytes.count == 16 { wanted = Int(g_dbus_message_bytes_needed(&bytes, 16, nil)) }
    }
    var error: UnsafeMutablePointer<GError>?
    guard let raw = g_dbus_message_new_from_blob(&bytes, gsize(bytes.count), Self.noDescriptors, &error)
    else { throw ServiceFailure(consuming: error) }
    return Message(owning: raw)
  }

  /// Sends a message that is short enough for the socket's buffer.
  func send(_ message: Message) throws(ServiceFailure) {
    var error: UnsafeMutablePointer<GError>?
    var count: gsize = 0
    g_dbus_message_set_serial(message.raw, 1)
    guard let bytes = g_dbus_message_to_blob(message.raw, &count, Self.noDescriptors, &error) else {
      throw ServiceFailure(consuming: error)
    }
    defer { g_free(bytes) }
    guard CofferLibc.send(number, bytes, Int(count), Int32(MSG_NOSIGNAL)) == Int(count) else {
      throw .failed("libsecret did not accept the answer of the service")
    }
  }
}

/// A message of D-Bus, released once.
final class Message {
  fileprivate let raw: OpaquePointer

  /// Takes over a full reference.
  fileprivate init(owning raw: OpaquePointer) { self.raw = raw }

  deinit { g_object_unref(UnsafeMutableRawPointer(raw)) }

  var arguments: [Variant] { g_dbus_message_get_body(raw).map { Variant(sinking: $0).children } ?? [] }

  func answer(_ body: Variant) -> Message {
    let answer = Message(owning: g_dbus_message_new_method_reply(raw))
    g_dbus_message_set_body(answer.raw, body.raw)
    return answer
  }

  func error(_ name: String) -> Message {
    Message(owning: g_dbus_message_new_method_error_literal(raw, name, name))
  }
}
#endif
