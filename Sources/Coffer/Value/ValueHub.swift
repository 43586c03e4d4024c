internal import CofferCore
internal import Observation
internal import Synchronization

/// What all wrappers of one secret in one backend share. The hub saves the value, watches it, and publishes each change
/// once, to Observation and to the streams of `values`.
///
/// There are two locks. `order` is held during calls on the store, so that changes are published in the order of the
/// writes. `state` is held only for short updates. Neither is held while a change is delivered, because delivery runs
/// the clients' code. Thread-safe.
final class ValueHub: Sendable, Observable {
  /// The result of reading the store. `nil` is an absent value.
  typealias Reading = Result<EncodedValue?, SecretError>

  /// What is kept of a secret besides its bytes. Values of different forms have different hubs.
  struct Form: Hashable, Sendable {
    /// Whether the version is kept in the metadata.
    var hasVersions = false
    var history = History.none
  }

  /// A reading, and the subscribers at the time of its publication. Later subscribers have begun with a newer reading.
  typealias Publication = (reading: Reading, subscribers: [StreamBuffer<Reading>])

  struct State {
    /// The reading that was published last, with a summary in place of the value.
    var lastPublished: Result<Summary?, SecretError>?
    /// Whether a client has read the value, or is about to, without holding `order`.
    var hasReaders = false
    /// Whether a client's read failed and the failure was not published. The next successful read must be published
    /// even if the value did not change.
    var hasFailed = false
    var subscribers: [ObjectIdentifier: StreamBuffer<Reading>] = [:]
    /// The number of streams that are being made.
    var newSubscribers = 0
    var outbox: [Publication] = []
    var isDelivering = false
    /// The error of a backend that cannot keep the current form of a value of an earlier version. No read tries again.
    var refusal: SecretError?
    /// Whether Observation has recorded a read.
    var isTracked = false
    var watch: Task<Void, Never>?

    var isObserved: Bool { isTracked || newSubscribers > 0 || !subscribers.isEmpty }
  }

  let identifier: SecretIdentifier
  let source: BackendSource
  let form: Form
  let fingerprintKey = SecretBytes.random(count: 32)
  let order = DeadlineLock()
  let state = Mutex(State())
  /// Held while the watch starts.
  let watchStart = DeadlineLock()
  private let registrar = ObservationRegistrar()
  private let onRelease: @Sendable () -> Void

  /// The longest wait for another thread's write, during which a keyring may be showing a prompt.
  static var timeout: Duration { .seconds(120) }
  /// The bytes of values that an unread stream keeps.
  private static var bufferLimit: Int { 1 << 20 }

  /// Creates the hub of a secret. `onRelease` is called by `deinit`.
  init(
    _ identifier: SecretIdentifier, _ source: BackendSource, _ form: Form,
    onRelease: @escaping @Sendable () -> Void
  ) {
    (self.identifier, self.source, self.form, self.onRelease) = (identifier, source, form, onRelease)
  }

  deinit {
    state.withLock { $0.watch?.cancel() }
    onRelease()
  }

  /// The property that Observation tracks. It has no value, because the hub keeps no secret.
  private var value: Void { () }

  // MARK: Reading

  /// Reads the value, and registers the access with Observation. Starts the watch if Observation records it.
  func read() throws(SecretError) -> EncodedValue? {
    registrar.access(self, keyPath: \.value)
    let isTracked = isReadTracked
    state.withLock { state in
      state.hasReaders = true
      if isTracked { state.isTracked = true }
    }
    let value: EncodedValue?
    do throws(SecretError) {
      // The watch starts before the read, so that every change after the read is published.
      if isTracked, let failure = watch() { throw failure }
      value = try load(mayPrompt: true)
    } catch {
      state.withLock { $0.hasFailed = true }
      throw error
    }
    if state.withLock({ $0.lastPublished == nil }) {
      let read = summary(of: .success(value))
      state.withLock { if $0.lastPublished == nil { $0.lastPublished = read } }
    }
    return value
  }

  /// A subscript for the key path of ``isReadTracked``.
  private subscript(probe: ObservationProbe) -> Void { () }

  /// Whether Observation records the reads of the calling thread. Only then must the store be watched.
  private var isReadTracked: Bool {
    if state.withLock({ $0.isTracked }) { return true }
    let probe = ObservationProbe()
    registrar.access(self, keyPath: \.[probe])
    return probe.wasRecorded
  }

  /// Returns a stream of the current reading and each change after it.
  func readings() -> AsyncStream<Reading> {
    let buffer = StreamBuffer<Reading>(limit: Self.bufferLimit)
    let key = ObjectIdentifier(buffer)
    state.withLock { $0.newSubscribers += 1 }
    defer { state.withLock { $0.newSubscribers -= 1 } }
    let stream = buffer.stream { [weak self] in self?.unsubscribe(key) }
    let failure = watch()
    do throws(SecretError) {
      try inOrder { () throws(SecretError) in
        let reading = failure.map { .failure($0) } ?? readNow()
        publishIfChanged(to: reading)
        yield(reading, to: buffer)
        state.withLock { $0.subscribers[key] = buffer }
      }
    } catch {
      buffer.yield(.failure(error))
      state.withLock { $0.subscribers[key] = buffer }
    }
    return stream
  }

  private func unsubscribe(_ key: ObjectIdentifier) {
    let ended: Task<Void, Never>? = state.withLock { state in
      state.subscribers[key] = nil
      return state.isObserved ? nil : state.watch.take()
    }
    ended?.cancel()
  }

  /// `mayPrompt` is `false` for a read that no person asked for, such as one that follows a change.
  func readNow(mayPrompt: Bool = true) -> Reading {
    Reading { () throws(SecretError) in try load(mayPrompt: mayPrompt) }
  }

  private func yield(_ reading: Reading, to buffer: StreamBuffer<Reading>) {
    var size = 0
    if case .success(let value?) = reading { size = value.secret.count }
    // A small value counts as 1/4096 of the limit, so that a stream keeps at most 4096 values.
    buffer.yield(reading, size: max(size, Self.bufferLimit / 4096))
  }

  // MARK: Writing

  /// Stores `new` if the value is still `old`, and returns whether it was.
  func replace(_ old: EncodedValue?, with new: EncodedValue?) throws(SecretError) -> Bool {
    try save(new, over: .only(old.map(summary))) != .isDifferent
  }

  /// Stores the value and publishes it. For `nil`, removes the value, and publishes its absence unless that was
  /// published last.
  @discardableResult
  func save(_ value: EncodedValue?, over expectation: SaveExpectation = .anything) throws(SecretError) -> SaveResult {
    try inOrder { () throws(SecretError) in
      // The hub does not read the value again when the backend reports the change: see `follow`.
      let result = try SecretChange.making(for: self) { () throws(SecretError) in
        try store(value, over: expectation)
      }
      switch result {
      case .saved: publish(.success(value))
      case .wasAbsent: publishIfChanged(to: .success(nil))
      case .isDifferent: break
      }
      return result
    }
  }

  /// Removes the value with its earlier versions, and publishes that it is absent. Returns
  /// whether the backend had a version of the value.
  func erase() throws(SecretError) -> Bool {
    try inOrder { () throws(SecretError) in
      let isErased = try SecretChange.making(for: self) { () throws(SecretError) in
        try source.resolve().erase(identifier)
      }
      publishIfChanged(to: .success(nil))
      return isErased
    }
  }

  // MARK: Publishing

  private func summary(of reading: Reading) -> Result<Summary?, SecretError> {
    reading.map { $0.map(summary) }
  }

  /// Runs `body` with `order` held, and then delivers what it has published.
  func inOrder<R>(_ body: () throws(SecretError) -> R) throws(SecretError) -> R {
    let result = try order.withLock(timeout: Self.timeout, body)
    drain()
    return result
  }

  /// Puts the reading into the outbox. Call it in ``inOrder(_:)``.
  private func publish(_ reading: Reading) {
    let summary = summary(of: reading)
    state.withLock { state in
      state.lastPublished = summary
      state.hasFailed = false
      state.outbox.append((reading, Array(state.subscribers.values)))
    }
  }

  /// Publishes the reading if it differs from the last one. Call it in ``inOrder(_:)``.
  func publishIfChanged(to reading: Reading) {
    let new = summary(of: reading)
    let isChanged = state.withLock { state in
      // No client has an earlier value, so this is not a change.
      if state.lastPublished == nil && state.subscribers.isEmpty && !state.hasReaders {
        state.lastPublished = new
        return false
      }
      if case .failure = new { return state.lastPublished != new }
      return state.lastPublished != new || state.hasFailed
    }
    if isChanged { publish(reading) }
  }

  /// Delivers the outbox in order. One thread at a time delivers. Other threads, and observers that write during the
  /// delivery, leave their publications to that thread.
  private func drain() {
    while true {
      let next: Publication? = state.withLock { state in
        if state.isDelivering || state.outbox.isEmpty { return nil }
        state.isDelivering = true
        return state.outbox.removeFirst()
      }
      guard let next else { return }
      registrar.withMutation(of: self, keyPath: \.value) {}
      for subscriber in next.subscribers { yield(next.reading, to: subscriber) }
      state.withLock { $0.isDelivering = false }
    }
  }
}
