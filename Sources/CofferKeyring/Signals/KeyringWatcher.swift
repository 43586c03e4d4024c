#if Keyring
internal import CofferCore
internal import Dispatch
internal import Synchronization

/// Broadcasts the changes that the service's signals report.
///
/// A ``SignalThread`` runs while there is a subscriber. A stream retains the watcher, and so outlives the backend.
final class KeyringWatcher: Sendable {
  fileprivate let environment: [String: String]
  fileprivate let options: KeyringOptions
  fileprivate let broadcast = ChangeBroadcast()
  private let running = Mutex<SignalThread?>(nil)

  init(environment: [String: String], options: KeyringOptions) {
    (self.environment, self.options) = (environment, options)
  }

  func subscribe() -> AsyncStream<SecretChange> {
    let stream = broadcast.subscribe { [self] in
      running.withLock { if broadcast.isEmpty { $0.take()?.stop() } }
    }
    let thread = running.withLock { running in
      let thread = running ?? SignalThread(of: self)
      running = thread
      return thread
    }
    thread.waitUntilReady(timeout: options.connectTimeout)
    return stream
  }
}

/// A thread that subscribes to the service's signals on its own connection, and broadcasts changes until it is stopped.
///
/// When the bus goes away, the thread connects again and broadcasts a change of everything. It also broadcasts that
/// when another process becomes the service.
private final class SignalThread: Sendable {
  private let watcher: KeyringWatcher
  private let context = EventContext()
  private let isStopped = Atomic(false)
  private let ready = DispatchSemaphore(value: 0)

  /// The time in which the signals for one item become one change. An update causes up to three.
  private static let coalescingInterval = Duration.milliseconds(20)
  /// The first and the longest time between two attempts to connect to the bus.
  private static let backoff = (first: Duration.milliseconds(250), last: Duration.seconds(30))

  init(of watcher: KeyringWatcher) {
    self.watcher = watcher
    // The thread blocks as long as there are subscribers, which a thread of a Dispatch queue must not.
    if startThread({ self.run() }) != 0 {
      // Without the thread, subscribers learn of no change, and must not conclude that nothing changes.
      ready.signal()
      watcher.broadcast.send(SecretChange(nil))
    }
  }

  func stop() {
    isStopped.store(true, ordering: .releasing)
    context.wake()
  }

  /// Waits until the thread has subscribed to signals, or its first attempt has failed.
  func waitUntilReady(timeout: Duration) {
    // Passes the signal on to the next subscriber.
    if ready.wait(timeout: .now() + timeout / .seconds(1)) == .success { ready.signal() }
  }

  private func run() {
    var isFirst = true
    var pause = Self.backoff.first
    defer { ready.signal() }
    while !isStopped.load(ordering: .acquiring) {
      do throws(ServiceFailure) {
        let bus = try BusConnection.to(
          BusAddress.find(in: watcher.environment), by: Deadline(after: watcher.options.connectTimeout),
          closingOn: context)
        pause = Self.backoff.first
        try context.asCurrent { () throws(ServiceFailure) in
          defer { bus.deliverLast(on: context) }
          try watch(bus, isFirst: isFirst)
        }
      } catch {
        // The bus cannot be reached. Subscribers get a change of everything after the next connection.
      }
      ready.signal()
      isFirst = false
      deliver(for: pause)
      pause = min(pause * 2, Self.backoff.last)
    }
  }

  /// Delivers signals for `duration`, or until the thread is stopped.
  private func deliver(for duration: Duration) {
    let end = ContinuousClock.now + duration
    while !isStopped.load(ordering: .acquiring), end > .now { context.iterate(timeout: end - .now) }
  }

  /// Broadcasts changes until the bus goes away or the thread is stopped.
  private func watch(_ bus: BusConnection, isFirst: Bool) throws(ServiceFailure) {
    let queue = SignalQueue()
    let name = SecretServiceProxy.wellKnownName
    var subscriptions = [SecretServiceProxy.Interface.collection, .service].map {
      SignalSubscription(bus, sender: name, interface: $0.rawValue, queue.add)
    }
    subscriptions.append(SignalSubscription(ownersOf: name, on: bus, queue.addOwnerChange))
    let closed = CloseSubscription(bus, waking: context)
    try withExtendedLifetime((subscriptions, closed)) { () throws(ServiceFailure) in
      // The bus handles messages in order: its answer means that the subscriptions are in force.
      _ = try bus.callBus("GetId", by: Deadline(after: watcher.options.callTimeout))
      var translator = SignalTranslator(SecretServiceProxy(bus: bus, timeout: watcher.options.callTimeout))
      translator.learn()
      ready.signal()
      if !isFirst { watcher.broadcast.send(SecretChange(nil)) }
      while !isStopped.load(ordering: .acquiring), !bus.isClosed {
        context.iterate(timeout: nil)
        if queue.isEmpty { continue }
        deliver(for: Self.coalescingInterval)
        for change in translator.changes(queue.drain()) { watcher.broadcast.send(change) }
      }
    }
  }
}
#endif
