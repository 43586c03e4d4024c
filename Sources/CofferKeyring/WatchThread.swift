#if Keyring
internal import CofferCore
internal import Dispatch
internal import Glibc
internal import Synchronization

/// One run of a watcher: connect, subscribe, drain, and again.
final class WatchThread: Sendable {
  private let environment: [String: String]
  private let options: KeyringOptions
  private let broadcast: ChangeBroadcast
  private let context = EventContext()
  private let isStopped = Atomic(false)
  private let ready = DispatchGroup()
  private let isReady = Atomic(false)

  /// Seconds within which signals for one item are taken together: an update is up to three of them.
  private static let pause = 0.02
  /// Seconds between attempts to reach the bus again: at first, and at most.
  private static let backoff = (first: 0.25, last: 30.0)

  init(environment: [String: String], options: KeyringOptions, broadcast: ChangeBroadcast) {
    self.environment = environment
    self.options = options
    self.broadcast = broadcast
    ready.enter()
    // A thread, and not a queue's: it blocks for as long as somebody listens.
    var thread = pthread_t()
    let argument = Unmanaged.passRetained(self)
    let result = pthread_create(
      &thread,
      nil,
      { argument in
        guard let argument else { return nil }
        Unmanaged<WatchThread>.fromOpaque(argument).takeRetainedValue().run()
        return nil
      },
      argument.toOpaque()
    )
    if result == 0 {
      pthread_detach(thread)
    } else {
      // Without a thread nothing is watched, which a listener must not take for silence.
      argument.release()
      markReady()
      broadcast.send(SecretChange(nil))
    }
  }

  func stop() {
    isStopped.store(true, ordering: .releasing)
    context.wake()
  }

  /// Waits until signals are subscribed to, or the first attempt has failed.
  func waitUntilReady(seconds: Double) { _ = ready.wait(timeout: .now() + seconds) }

  private func markReady() {
    if !isReady.exchange(true, ordering: .acquiringAndReleasing) { ready.leave() }
  }

  private func run() {
    var wasInterrupted = false
    var wait = Self.backoff.first
    context.asCurrent {
      while !isStopped.load(ordering: .acquiring) {
        do throws(ServiceFailure) {
          let bus = try connect()
          wait = Self.backoff.first
          try watch(bus, afterInterruption: wasInterrupted)
        } catch {
          // No bus, or one that went away. Listeners are told once there is one again.
        }
        markReady()
        wasInterrupted = true
        sleep(wait)
        wait = min(2 * wait, Self.backoff.last)
      }
    }
  }

  private func sleep(_ seconds: Double) {
    let end = ContinuousClock.now + .seconds(seconds)
    while !isStopped.load(ordering: .acquiring) {
      let rest = (end - .now) / .seconds(1)
      if rest <= 0 { return }
      context.iterate(waitingAtMost: rest)
    }
  }

  private func connect() throws(ServiceFailure) -> BusConnection {
    let address: String
    do throws(SecretError) { address = try BusAddress.find(in: environment) } catch { throw .secret(error) }
    return try BusConnection(address: address, seconds: options.connectDeadline)
  }

  /// Delivers changes until the bus goes away or nobody listens any more.
  private func watch(_ bus: BusConnection, afterInterruption: Bool) throws(ServiceFailure) {
    let log = SignalLog()
    let subscriptions = [
      SignalSubscription(
        bus, sender: SecretServiceProxy.name, interface: SecretServiceProxy.Interface.collection
      ) {
        log.note($0)
      },
      SignalSubscription(
        bus, sender: SecretServiceProxy.name, interface: SecretServiceProxy.Interface.service
      ) { log.note($0) },
      SignalSubscription(
        bus,
        sender: "org.freedesktop.DBus",
        interface: "org.freedesktop.DBus",
        member: "NameOwnerChanged",
        firstArgument: SecretServiceProxy.name
      ) { log.noteOwner($0) },
    ]
    let closed = ClosedNotice(bus, wake: context)
    try withExtendedLifetime((subscriptions, closed)) { () throws(ServiceFailure) in
      // The bus answers in order: with this answer the subscriptions are in force.
      _ = try bus.callBus("GetId", seconds: options.callDeadline)
      var translator = SignalTranslator(bus, seconds: options.callDeadline)
      translator.learn()
      markReady()
      if afterInterruption { broadcast.send(SecretChange(nil)) }
      while !isStopped.load(ordering: .acquiring), !bus.isClosed {
        context.iterate(waitingAtMost: nil)
        if log.isEmpty { continue }
        let end = ContinuousClock.now + .seconds(Self.pause)
        while end > .now { context.iterate(waitingAtMost: (end - .now) / .seconds(1)) }
        for change in translator.changes(log.take()) { broadcast.send(change) }
      }
    }
  }
}
#endif
