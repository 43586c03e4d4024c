internal import CofferCore
internal import Dispatch
internal import Observation
internal import Synchronization

/// Where all values for one secret in one backend meet: it writes, watches, and tells each change once.
///
/// Two locks. `order` is held across the backend's calls, so that the order of announcements is the order of
/// writes. `state` is held for moments. Neither is held while an announcement is delivered, because that
/// runs other people's code.
final class SecretHub: Sendable, Observable {
  /// What a read of the backend gave.
  enum Reading: Sendable {
    case absent
    case secret(SharedSecret)
    case failed(SecretError)
  }

  /// What observers were last told, without the secret itself.
  private enum LastPublished: Equatable {
    case nothing
    case absent
    case secret(SecretFingerprint)
    case failed(SecretError)
  }

  private struct Announcement {
    let reading: Reading
    /// Who listened when it was made: who came later began with a newer value.
    let listeners: [AsyncStream<Reading>.Continuation]
  }

  private struct State {
    var told = LastPublished.nothing
    /// Someone has read the secret, or is about to, outside `order`.
    var hasReaders = false
    /// A reader has met a failure that nobody else was told of: that it is over is news.
    var hasFailed = false
    var nextListener = 0
    var listeners: [Int: AsyncStream<Reading>.Continuation] = [:]
    var outbox: [Announcement] = []
    var isDelivering = false
    var watch: Task<Void, Never>?
  }

  let identifier: SecretIdentifier
  private let source: BackendSource
  private let order = DeadlineLock()
  private let state = Mutex(State())
  /// Held while watching begins.
  private let beginning = DeadlineLock()
  private let registrar = ObservationRegistrar()
  private let fingerprintKey = SharedSecret(.random(count: 32))
  private let onRelease: @Sendable () -> Void

  /// The longest wait for another thread's write, during which a keyring may be showing a prompt.
  private static let timeout = Duration.seconds(120)

  init(_ identifier: SecretIdentifier, source: BackendSource, onRelease: @escaping @Sendable () -> Void) {
    self.identifier = identifier
    self.source = source
    self.onRelease = onRelease
  }

  deinit {
    state.withLock { $0.watch?.cancel() }
    onRelease()
  }

  /// Stands for the secret in the eyes of Observation. It has no value: none is kept.
  private var value: Void { () }

  // MARK: Reading

  /// Reads the secret, and has Observation and the backend's changes watched from now on.
  func read() throws(SecretError) -> SecretBytes? {
    registrar.access(self, keyPath: \.value)
    state.withLock { $0.hasReaders = true }
    let secret: SecretBytes?
    do throws(SecretError) {
      let backend = try source.resolve()
      // Before the read: what changes after it is told.
      watch(backend)
      secret = try backend.lookUp(identifier)
    } catch {
      state.withLock { $0.hasFailed = true }
      throw error.about(identifier)
    }
    if state.withLock({ $0.told == .nothing }) {
      let told = told(secret)
      state.withLock { if $0.told == .nothing { $0.told = told } }
    }
    return secret
  }

  /// What is there now, then each change.
  func readings() -> AsyncStream<Reading> {
    let (stream, continuation) = AsyncStream.makeStream(of: Reading.self)
    let key = state.withLock { state in
      state.nextListener += 1
      return state.nextListener
    }
    continuation.onTermination = { [weak self] _ in
      _ = self?.state.withLock { $0.listeners.removeValue(forKey: key) }
    }
    do throws(SecretError) {
      watch(try source.resolve())
      try order.withLock(timeout: Self.timeout) { () throws(SecretError) in
        let reading = readNow()
        publishIfChanged(to: reading)
        continuation.yield(reading)
        state.withLock { $0.listeners[key] = continuation }
      }
    } catch {
      continuation.yield(.failed(error.about(identifier)))
      state.withLock { $0.listeners[key] = continuation }
    }
    drain()
    return stream
  }

  /// How many streams there are.
  var listenerCount: Int { state.withLock { $0.listeners.count } }

  private func readNow() -> Reading {
    do throws(SecretError) {
      guard let secret = try source.resolve().lookUp(identifier) else { return .absent }
      return .secret(SharedSecret(secret))
    } catch {
      return .failed(error.about(identifier))
    }
  }

  // MARK: Writing

  /// Stores the secret, and tells of it.
  func store(_ secret: consuming SecretBytes) throws(SecretError) {
    let kept = SharedSecret(secret)
    try write { backend throws(SecretError) in
      try backend.store(kept.bytes, for: identifier)
      return .secret(kept)
    }
  }

  /// Removes the secret, and tells of it where there was one.
  func remove() throws(SecretError) {
    try write { backend throws(SecretError) in
      if try backend.remove(identifier) { return .absent }
      // Another process may have removed it, and that is still to be told.
      publishIfChanged(to: .absent)
      return nil
    }
  }

  /// Stores `new`, or removes where that is `nil`, if what is there is still `old`. Returns whether it was.
  ///
  /// One step towards the whole world where the backend has transactions, else towards this process.
  func replace(
    _ old: borrowing SecretBytes?,
    with new: consuming SecretBytes
  ) throws(SecretError) -> Bool {
    let kept = SharedSecret(new)
    let expected = told(old)
    var isReplaced = false
    try write { backend throws(SecretError) in
      isReplaced = try backend.withTransaction { transaction throws(SecretError) in
        let current = try transaction.lookUp(identifier)
        if told(current) != expected { return false }
        try transaction.store(kept.bytes, for: identifier, metadata: nil)
        return true
      }
      return isReplaced ? .secret(kept) : nil
    }
    return isReplaced
  }

  private func write(
    _ body: (any SecretBackend) throws(SecretError) -> Reading?
  ) throws(SecretError) {
    do throws(SecretError) {
      let backend = try source.resolve()
      try order.withLock(timeout: Self.timeout) { () throws(SecretError) in
        if let reading = try body(backend) { announce(reading) }
      }
    } catch {
      throw error.about(identifier)
    }
    drain()
  }

  // MARK: Telling

  private func told(_ secret: borrowing SecretBytes?) -> LastPublished {
    switch secret {
    case .some(let secret): .secret(secret.fingerprint(under: fingerprintKey.bytes))
    case .none: .absent
    }
  }

  private func told(_ reading: Reading) -> LastPublished {
    switch reading {
    case .absent: .absent
    case .secret(let secret): .secret(secret.bytes.fingerprint(under: fingerprintKey.bytes))
    case .failed(let error): .failed(error)
    }
  }

  /// Puts the reading into the outbox. Called with `order` held; ``drain()`` follows when it is not.
  private func announce(_ reading: Reading) {
    let told = told(reading)
    state.withLock { state in
      state.told = told
      state.hasFailed = false
      state.outbox.append(Announcement(reading: reading, listeners: Array(state.listeners.values)))
    }
  }

  /// Announces the reading if it is not what was told last. Called with `order` held.
  private func publishIfChanged(to reading: Reading) {
    let new = told(reading)
    let isNews = state.withLock { state in
      // Nobody knows of anything else: this is where it begins.
      if state.told == .nothing && state.listeners.isEmpty && !state.hasReaders {
        state.told = new
        return false
      }
      if case .failed = new { return state.told != new }
      return state.told != new || state.hasFailed
    }
    if isNews { announce(reading) }
  }

  /// Empties the outbox, in order. One thread at a time does; the others leave theirs to it, as does an
  /// observer that writes while it is being told.
  private func drain() {
    while true {
      let next: Announcement? = state.withLock { state in
        if state.isDelivering || state.outbox.isEmpty { return nil }
        state.isDelivering = true
        return state.outbox.removeFirst()
      }
      guard let next else { return }
      registrar.withMutation(of: self, keyPath: \.value) {}
      for listener in next.listeners { listener.yield(next.reading) }
      state.withLock { $0.isDelivering = false }
    }
  }

  // MARK: Watching

  /// Starts to follow the backend's changes, once. The task does not keep the hub.
  private func watch(_ backend: any SecretBackend) {
    guard let backend = backend as? any ObservableSecretBackend else { return }
    do throws(SecretError) {
      // Whoever comes second waits until it is true.
      try beginning.withLock(timeout: .seconds(10)) { () throws(SecretError) in
        if state.withLock({ $0.watch == nil }) { follow(backend) }
      }
    } catch {
      // A backend that takes so long, or that reads this secret in order to watch it, is not watched.
    }
  }

  private func follow(_ backend: any ObservableSecretBackend) {
    let changes = backend.changes()
    let identifier = identifier
    let task = Task { [weak self] in
      for await change in changes where change.identifier == nil || change.identifier == identifier {
        guard let hub = self else { return }
        // A read may wait for a person, and the cooperative pool is not for that.
        await withCheckedContinuation { continuation in
          Self.watching.async {
            hub.reread()
            continuation.resume()
          }
        }
      }
    }
    state.withLock { $0.watch = task }
  }

  private static let watching = DispatchQueue(label: "coffer.watching", attributes: .concurrent)

  /// Reads anew after a change somewhere, and tells if it is news.
  private func reread() {
    do throws(SecretError) {
      try order.withLock(timeout: Self.timeout) { () throws(SecretError) in publishIfChanged(to: readNow()) }
    } catch {
      // A writer here has had the hub for two minutes. Its own write is told when it ends.
    }
    drain()
  }
}
