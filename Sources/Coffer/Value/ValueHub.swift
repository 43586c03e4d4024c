internal import CofferCore
internal import Dispatch
internal import Observation
internal import Synchronization

/// The meeting point of all ``SecurelyStoredValue`` objects for one secret in one backend. It writes the secret,
/// watches it, and publishes each change once, to Observation and to the streams of `values`.
///
/// There are two locks. `order` is held during calls on the backend, so that changes are published in the order of
/// the writes. `state` is held only for short updates. Neither is held while a change is delivered, because
/// delivery runs the clients' code. Thread-safe.
final class ValueHub: Sendable, Observable {
  /// The result of reading the backend.
  enum Reading: Sendable {
    case absent
    case secret(SharedSecret)
    case failed(SecretError)
  }

  /// The reading that was published last, with a fingerprint in place of the secret.
  private enum LastPublished: Equatable {
    case nothing
    case absent
    case secret(SecretFingerprint)
    case failed(SecretError)
  }

  private struct Publication {
    let reading: Reading
    /// The subscribers at the time of the publication. Later ones have begun with a newer reading.
    let subscribers: [AsyncStream<Reading>.Continuation]
  }

  private struct State {
    var lastPublished = LastPublished.nothing
    /// Whether a client has read the secret, or is about to, without holding `order`.
    var hasReaders = false
    /// Whether a client's read failed without a publication. The next successful read must be published even if
    /// the secret did not change.
    var hasFailed = false
    var nextSubscriber = 0
    var subscribers: [Int: AsyncStream<Reading>.Continuation] = [:]
    var outbox: [Publication] = []
    var isDelivering = false
    var watch: Task<Void, Never>?
  }

  let identifier: SecretIdentifier
  private let source: BackendSource
  private let order = DeadlineLock()
  private let state = Mutex(State())
  /// Held while the watch starts.
  private let watchStart = DeadlineLock()
  private let registrar = ObservationRegistrar()
  private let fingerprintKey = SharedSecret(.random(count: 32))
  private let onRelease: @Sendable () -> Void

  /// The longest wait for another thread's write, during which a keyring may be showing a prompt.
  private static let timeout = Duration.seconds(120)

  /// Creates the hub of the secret `identifier` in the backend of `source`. `onRelease` is called by `deinit`.
  init(_ identifier: SecretIdentifier, source: BackendSource, onRelease: @escaping @Sendable () -> Void) {
    self.identifier = identifier
    self.source = source
    self.onRelease = onRelease
  }

  deinit {
    state.withLock { $0.watch?.cancel() }
    onRelease()
  }

  /// The property that Observation tracks. It has no value, because the hub keeps no secret.
  private var value: Void { () }

  // MARK: Reading

  /// Reads the secret. Starts the watch, and registers the access with Observation.
  func read() throws(SecretError) -> SecretBytes? {
    registrar.access(self, keyPath: \.value)
    state.withLock { $0.hasReaders = true }
    let secret: SecretBytes?
    do throws(SecretError) {
      let backend = try source.resolve()
      // Before the read, so that every change after the read is published.
      watch(backend)
      secret = try backend.lookUp(identifier)
    } catch {
      state.withLock { $0.hasFailed = true }
      throw error.about(identifier)
    }
    if state.withLock({ $0.lastPublished == .nothing }) {
      let read = summary(of: secret)
      state.withLock { if $0.lastPublished == .nothing { $0.lastPublished = read } }
    }
    return secret
  }

  /// Returns a stream of the current reading and each change after it.
  func readings() -> AsyncStream<Reading> {
    let (stream, continuation) = AsyncStream.makeStream(of: Reading.self)
    let key = state.withLock { state in
      state.nextSubscriber += 1
      return state.nextSubscriber
    }
    continuation.onTermination = { [weak self] _ in
      _ = self?.state.withLock { $0.subscribers.removeValue(forKey: key) }
    }
    do throws(SecretError) {
      watch(try source.resolve())
      try order.withLock(timeout: Self.timeout) { () throws(SecretError) in
        let reading = readNow()
        publishIfChanged(to: reading)
        continuation.yield(reading)
        state.withLock { $0.subscribers[key] = continuation }
      }
    } catch {
      continuation.yield(.failed(error.about(identifier)))
      state.withLock { $0.subscribers[key] = continuation }
    }
    drain()
    return stream
  }

  /// The number of streams that have not ended.
  var subscriberCount: Int { state.withLock { $0.subscribers.count } }

  private func readNow() -> Reading {
    do throws(SecretError) {
      guard let secret = try source.resolve().lookUp(identifier) else { return .absent }
      return .secret(SharedSecret(secret))
    } catch {
      return .failed(error.about(identifier))
    }
  }

  // MARK: Writing

  /// Stores the secret and publishes it.
  func store(_ secret: consuming SecretBytes) throws(SecretError) {
    let secret = SharedSecret(secret)
    try write { backend throws(SecretError) in
      try backend.store(secret.bytes, for: identifier)
      publish(.secret(secret))
    }
  }

  /// Removes the secret, and publishes that it is absent unless that was published last.
  func remove() throws(SecretError) {
    try write { backend throws(SecretError) in
      if try backend.remove(identifier) { publish(.absent) } else { publishIfChanged(to: .absent) }
    }
  }

  /// Stores `new` if the secret is still `old`, and returns whether it was.
  ///
  /// The comparison and the store are one step for other threads of this process, and for other processes if the
  /// backend has transactions.
  func replace(
    _ old: borrowing SecretBytes?,
    with new: consuming SecretBytes
  ) throws(SecretError) -> Bool {
    let new = SharedSecret(new)
    let expected = summary(of: old)
    var isReplaced = false
    try write { backend throws(SecretError) in
      isReplaced = try backend.withTransaction { transaction throws(SecretError) in
        let current = try transaction.lookUp(identifier)
        if summary(of: current) != expected { return false }
        try transaction.store(new.bytes, for: identifier, metadata: nil)
        return true
      }
      if isReplaced { publish(.secret(new)) }
    }
    return isReplaced
  }

  private func write(_ body: (any SecretBackend) throws(SecretError) -> Void) throws(SecretError) {
    do throws(SecretError) {
      let backend = try source.resolve()
      try order.withLock(timeout: Self.timeout) { () throws(SecretError) in try body(backend) }
    } catch {
      throw error.about(identifier)
    }
    drain()
  }

  // MARK: Publishing

  private func summary(of secret: borrowing SecretBytes?) -> LastPublished {
    switch secret {
    case .some(let secret): .secret(secret.fingerprint(under: fingerprintKey.bytes))
    case .none: .absent
    }
  }

  private func summary(of reading: Reading) -> LastPublished {
    switch reading {
    case .absent: .absent
    case .secret(let secret): .secret(secret.bytes.fingerprint(under: fingerprintKey.bytes))
    case .failed(let error): .failed(error)
    }
  }

  /// Puts the reading into the outbox. Call it with `order` held, and ``drain()`` after `order` is released.
  private func publish(_ reading: Reading) {
    let summary = summary(of: reading)
    state.withLock { state in
      state.lastPublished = summary
      state.hasFailed = false
      state.outbox.append(Publication(reading: reading, subscribers: Array(state.subscribers.values)))
    }
  }

  /// Publishes the reading if it differs from the last one. Call it as ``publish(_:)``.
  private func publishIfChanged(to reading: Reading) {
    let new = summary(of: reading)
    let isChanged = state.withLock { state in
      // No client has an earlier value.
      if state.lastPublished == .nothing && state.subscribers.isEmpty && !state.hasReaders {
        state.lastPublished = new
        return false
      }
      if case .failed = new { return state.lastPublished != new }
      return state.lastPublished != new || state.hasFailed
    }
    if isChanged { publish(reading) }
  }

  /// Delivers the outbox in order. One thread at a time delivers. Other threads, and observers that write during
  /// the delivery, leave their publications to that thread.
  private func drain() {
    while true {
      let next: Publication? = state.withLock { state in
        if state.isDelivering || state.outbox.isEmpty { return nil }
        state.isDelivering = true
        return state.outbox.removeFirst()
      }
      guard let next else { return }
      registrar.withMutation(of: self, keyPath: \.value) {}
      for subscriber in next.subscribers { subscriber.yield(next.reading) }
      state.withLock { $0.isDelivering = false }
    }
  }

  // MARK: Watching

  /// Starts the watch of the backend's changes if it has not started. Concurrent callers block until it has.
  private func watch(_ backend: any SecretBackend) {
    guard let backend = backend as? any ObservableSecretBackend else { return }
    do throws(SecretError) {
      try watchStart.withLock(timeout: .seconds(10)) { () throws(SecretError) in
        if state.withLock({ $0.watch == nil }) { follow(backend) }
      }
    } catch {
      // The backend took too long, or its `changes()` reads this secret. It stays unwatched.
    }
  }

  /// Reads the secret again after each change that the backend reports. The task does not keep the hub.
  private func follow(_ backend: any ObservableSecretBackend) {
    let changes = backend.changes()
    let identifier = identifier
    let task = Task { [weak self] in
      for await change in changes where change.identifier == nil || change.identifier == identifier {
        guard let hub = self else { return }
        // Outside the cooperative pool, because the read may wait for a prompt.
        await withCheckedContinuation { continuation in
          Self.reads.async {
            hub.readAgain()
            continuation.resume()
          }
        }
      }
    }
    state.withLock { $0.watch = task }
  }

  private static let reads = DispatchQueue(label: "coffer.reads", attributes: .concurrent)

  private func readAgain() {
    do throws(SecretError) {
      try order.withLock(timeout: Self.timeout) { () throws(SecretError) in publishIfChanged(to: readNow()) }
    } catch {
      // A write in this process has taken longer than the timeout. It is published when it ends.
    }
    drain()
  }
}
