#if Keyring
internal import CLibsecret
internal import Glibc

/// GDBus's worker thread. A process has one, which its first connection starts.
enum BusWorker {
  /// Starts the thread with all signals blocked, so that the kernel delivers them to the program's threads.
  /// On a thread that does not block it, a signal that the program blocks would end the process, and a
  /// `SIGCHLD` that the program waits for would be lost.
  static func start() { started }

  private static let started: Void = {
    var (all, previous) = (sigset_t(), sigset_t())
    sigfillset(&all)
    pthread_sigmask(SIG_SETMASK, &all, &previous)
    defer { pthread_sigmask(SIG_SETMASK, &previous, nil) }
    // Any connection starts the thread. A socket pair without a peer does not wait for anything.
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
