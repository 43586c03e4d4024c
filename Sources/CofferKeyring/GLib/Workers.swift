#if Keyring
internal import CLibsecret
internal import Glibc

/// GDBus's own thread, of which a process has one, from its first connection on.
enum Workers {
  /// Starts the thread with all signals held back there: they are for the program's threads. A signal that
  /// one of those holds back would otherwise act on this one, and end the process; and that a child ended
  /// would be heard by nobody.
  static let started: Void = {
    var (all, previous) = (sigset_t(), sigset_t())
    sigfillset(&all)
    pthread_sigmask(SIG_SETMASK, &all, &previous)
    defer { pthread_sigmask(SIG_SETMASK, &previous, nil) }
    // A connection to nobody, which waits for nothing.
    var ends: [Int32] = [-1, -1]
    guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
      return
    }
    close(ends[1])
    guard let socket = g_socket_new_from_fd(ends[0], nil) else {
      close(ends[0])
      return
    }
    defer { g_object_unref(UnsafeMutableRawPointer(socket)) }
    guard let stream = g_socket_connection_factory_create_connection(socket) else { return }
    defer { g_object_unref(UnsafeMutableRawPointer(stream)) }
    let connection = g_dbus_connection_new_sync(
      UnsafeMutableRawPointer(stream).assumingMemoryBound(to: GIOStream.self),
      nil, G_DBUS_CONNECTION_FLAGS_NONE, nil, nil, nil)
    if let connection { g_object_unref(UnsafeMutableRawPointer(connection)) }
  }()
}
#endif
