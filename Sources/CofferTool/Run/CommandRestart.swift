internal import CLinux
internal import Coffer
internal import CofferSystem
internal import CofferLibc

/// Decides when a command is ended and started again, after a change of a secret that it was given. Not thread-safe.
final class CommandRestart {
  /// Becomes readable after a change.
  private let changed: Descriptor
  private let (patience, pause): (Duration, Duration)
  /// Whether the process is a relay, which must not end before the command.
  private let isRelay: Bool
  private let prepare: () -> Bool
  /// When to read the secrets.
  private var readTime: ContinuousClock.Instant?
  /// When to kill the command. `nil` unless it was told to end.
  private var killTime: ContinuousClock.Instant?
  private var isKilling = false
  /// Whether somebody else has told the command to end.
  private var isCancelled = false

  /// Restarts after `changes` of `secrets`. Changes within `pause` cause one restart. `patience` is the time between
  /// SIGTERM and SIGKILL. `prepare` reads the secrets, and returns `false` if the command is to run on as it is.
  init(
    after changes: AsyncStream<SecretChange>, of secrets: Set<SecretIdentifier>,
    patience: Duration = .seconds(10), pause: Duration = .milliseconds(200), isRelay: Bool = false,
    prepare: @escaping () -> Bool
  ) throws(SecretError) {
    do throws(FileSystemError) { changed = try Descriptor(opened: coffer_eventfd()) } catch {
      throw SecretError(.io, "Changes of secrets cannot be watched: \(error).")
    }
    (self.patience, self.pause, self.isRelay, self.prepare) = (patience, pause, isRelay, prepare)
    Task.detached { [changed] in
      for await change in changes where change.identifier.map(secrets.contains) ?? true {
        eventfd_write(changed.number, 1)
      }
    }
  }

  /// What to wait for, as poll(2) does. A change while the command ends is read after it has started again.
  var requests: [pollfd] {
    killTime == nil ? [pollfd(fd: changed.number, events: Int16(POLLIN), revents: 0)] : []
  }

  /// When to call ``proceed(with:hasChanged:)`` at the latest.
  var deadline: ContinuousClock.Instant? { killTime ?? readTime }

  /// Takes note of a signal that this process has received.
  func observe(_ arrival: BlockedSignals.Arrival) {
    // Another process may send SIGHUP to make the command read a file again.
    if arrival.signal == SIGHUP && !arrival.isFromKernel { return }
    if BlockedSignals.interruptions.contains(arrival.signal) { isCancelled = true }
  }

  /// Whether the command, which has ended, is to be started again now.
  func isDue() -> Bool {
    defer { (killTime, isKilling) = (nil, false) }
    return killTime != nil && !isCancelled
  }

  /// Does what is due: reads the secrets, ends the command, or kills it.
  func proceed(with process: pid_t, hasChanged: Bool) {
    if hasChanged {
      var count: eventfd_t = 0
      eventfd_read(changed.number, &count)
      readTime = readTime ?? .now + pause
    }
    if let time = readTime, time <= .now {
      readTime = nil
      if isCancelled {
        note("secret: A secret changed. The command is not restarted, because it was told to end.")
      } else if prepare() {
        killTime = .now + patience
        kill(process, SIGTERM)
        kill(process, SIGCONT)  // a stopped command
      }
    }
    if let time = killTime, time <= .now {
      if isRelay && !isKilling { BlockedSignals.requestKill(by: process) } else { kill(process, SIGKILL) }
      (killTime, isKilling) = (.now + patience, true)
    }
  }
}
