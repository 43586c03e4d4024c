internal import CLinux
internal import Coffer
internal import CofferSystem
internal import CofferLibc

/// Signals that are blocked on this thread until an operation has been completed or undone.
///
/// Signals that were ignored when the process started remain ignored.
struct BlockedSignals: ~Copyable {
  /// The signals that are forwarded to a command that runs as a child.
  static let forwarded = [SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM]
  /// The signals by which a person or the system ends a program.
  static let interruptions = [SIGINT, SIGTERM, SIGHUP, SIGQUIT]

  private var blocked = sigset_t()
  /// The signals that this thread blocked before. A child must block them.
  private(set) var previous = sigset_t()
  private let descriptor: Int32

  init(_ signals: [Int32]) throws(SecretError) {
    sigemptyset(&blocked)
    for signal in signals where !Self.isIgnored(signal) { sigaddset(&blocked, signal) }
    pthread_sigmask(SIG_BLOCK, &blocked, &previous)
    descriptor = signalfd(-1, &blocked, Int32(SFD_CLOEXEC))
    if descriptor < 0 {
      let code = errno
      pthread_sigmask(SIG_SETMASK, &previous, nil)
      throw SecretError(.io, "Signals cannot be blocked: \(FileSystemError(code)).")
    }
  }

  deinit {
    close(descriptor)
    // Delivers the pending signals.
    var previous = previous
    pthread_sigmask(SIG_SETMASK, &previous, nil)
  }

  struct Arrival {
    let signal: Int32
    let sender: pid_t
    /// Whether the kernel sent it, as for a key on the terminal. The whole process group then received it.
    let isFromKernel: Bool
  }

  /// Waits until a signal arrives or some of `others` can be read or have ended. Returns the indices of the latter.
  borrowing func wait(orReadable others: [Int32]) throws(SecretError) -> (arrival: Arrival?, ready: [Int]) {
    var requests = others.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    let arrival = try wait(for: &requests)
    return (arrival, requests.indices.filter { requests[$0].revents != 0 })
  }

  /// Waits as poll(2) does, until a signal arrives, some of `requests` are ready or `deadline` has passed.
  borrowing func wait(
    for requests: inout [pollfd], until deadline: ContinuousClock.Instant? = nil
  ) throws(SecretError) -> Arrival? {
    let milliseconds = deadline.map { Int32(max(0, (($0 - .now) / .milliseconds(1)).rounded(.up))) } ?? -1
    requests.append(pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0))
    defer { requests.removeLast() }
    while poll(&requests, nfds_t(requests.count), milliseconds) < 0 {
      if errno != EINTR { throw SecretError(.io, "Waiting for a signal failed: \(FileSystemError(errno)).") }
    }
    if requests[requests.count - 1].revents == 0 { return nil }
    var info = signalfd_siginfo()
    let size = MemoryLayout<signalfd_siginfo>.size
    guard read(descriptor, &info, size) == size else {
      throw SecretError(.io, "A signal cannot be read: \(FileSystemError(errno)).")
    }
    let fromKernel: Int32 = 0x80  // SI_KERNEL
    let isRequest = info.ssi_code == SI_QUEUE && info.ssi_int == SIGKILL
    return Arrival(
      signal: isRequest ? SIGKILL : Int32(bitPattern: info.ssi_signo), sender: pid_t(info.ssi_pid),
      isFromKernel: info.ssi_code == fromKernel)
  }

  /// Asks a process that forwards signals to kill its child. SIGKILL would end that process itself, so it gets a marked
  /// SIGTERM, for which ``Arrival/signal`` is SIGKILL.
  static func requestKill(by process: pid_t) { sigqueue(process, SIGTERM, sigval(sival_int: SIGKILL)) }

  /// Sends `signal` to this process or to its whole process group, and unblocks it for a moment. Returns if the signal
  /// does not end the process; after a stop, returns when the process continues.
  static func deliver(_ signal: Int32, toGroup: Bool = false) {
    var (one, before) = (sigset_t(), sigset_t())
    sigemptyset(&one)
    sigaddset(&one, signal)
    if toGroup { kill(0, signal) } else { raise(signal) }
    pthread_sigmask(SIG_UNBLOCK, &one, &before)
    pthread_sigmask(SIG_SETMASK, &before, nil)
  }

  private static func isIgnored(_ signal: Int32) -> Bool {
    var action = sigaction()
    sigaction(signal, nil, &action)
    return ProcessHardening.isIgnoring(action.__sigaction_handler.sa_handler)
  }
}
