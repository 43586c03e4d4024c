internal import CLinux
internal import Coffer
internal import Glibc

/// Signals held back on this thread while something must be undone before they act.
///
/// Signals that were ignored when the process started stay ignored.
struct BlockedSignals: ~Copyable {
  private var held = sigset_t()
  /// What this thread held back before: what a child is to hold back.
  private(set) var previous = sigset_t()
  private let descriptor: Int32

  init(_ signals: [Int32]) throws(SecretError) {
    sigemptyset(&held)
    for signal in signals where !Self.isIgnored(signal) { sigaddset(&held, signal) }
    pthread_sigmask(SIG_BLOCK, &held, &previous)
    descriptor = signalfd(-1, &held, Int32(SFD_CLOEXEC))
    if descriptor < 0 {
      let code = errno
      pthread_sigmask(SIG_SETMASK, &previous, nil)
      throw SecretError(.io, "Signals cannot be held back: \(systemMessage(code)).")
    }
  }

  deinit {
    close(descriptor)
    // A signal that came meanwhile acts here.
    var previous = previous
    pthread_sigmask(SIG_SETMASK, &previous, nil)
  }

  /// A signal that came, and whether the kernel sent it, as it does for a key on the terminal: then every
  /// process of the group has got it.
  struct Arrival {
    let signal: Int32
    let isFromKernel: Bool
  }

  /// Waits for a signal, or until some of `others` can be read or have ended, and returns the indices of those.
  borrowing func wait(orReadable others: [Int32]) throws(SecretError) -> (arrival: Arrival?, ready: [Int]) {
    var sources = ([descriptor] + others).map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    while poll(&sources, nfds_t(sources.count), -1) < 0 {
      if errno != EINTR { throw SecretError(.io, "Waiting failed: \(systemMessage(errno)).") }
    }
    let ready = others.indices.filter { sources[$0 + 1].revents != 0 }
    return (sources[0].revents != 0 ? try nextArrival() : nil, ready)
  }

  /// Waits for a signal, which it returns, or until `other` can be read, and then returns `nil`.
  borrowing func wait(orReadable other: Int32) throws(SecretError) -> Int32? {
    var sources = [
      pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
      pollfd(fd: other, events: Int16(POLLIN), revents: 0),
    ]
    while poll(&sources, nfds_t(sources.count), -1) < 0 {
      if errno != EINTR { throw SecretError(.io, "Waiting failed: \(systemMessage(errno)).") }
    }
    return sources[0].revents != 0 ? try next() : nil
  }

  /// A signal that has come, if one has.
  borrowing func come() throws(SecretError) -> Int32? {
    var source = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return poll(&source, 1, 0) > 0 ? try next() : nil
  }

  private borrowing func next() throws(SecretError) -> Int32 { try nextArrival().signal }

  private borrowing func nextArrival() throws(SecretError) -> Arrival {
    var info = signalfd_siginfo()
    let size = MemoryLayout<signalfd_siginfo>.size
    guard read(descriptor, &info, size) == size else {
      throw SecretError(.io, "A signal could not be read: \(systemMessage(errno)).")
    }
    let fromKernel: Int32 = 0x80  // SI_KERNEL
    return Arrival(signal: Int32(bitPattern: info.ssi_signo), isFromKernel: info.ssi_code == fromKernel)
  }

  /// Lets `signal` act as if it came now, and returns if it does not end the process.
  borrowing func deliver(_ signal: Int32) {
    var one = sigset_t()
    sigemptyset(&one)
    sigaddset(&one, signal)
    raise(signal)
    pthread_sigmask(SIG_UNBLOCK, &one, nil)
    pthread_sigmask(SIG_BLOCK, &one, nil)
  }

  private static func isIgnored(_ signal: Int32) -> Bool {
    var action = sigaction()
    sigaction(signal, nil, &action)
    return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
      == unsafeBitCast(SIG_IGN, to: Int.self)
  }
}
