internal import CofferCore
internal import Dispatch
internal import Synchronization

extension ConformanceCheck {
  private static let isObservable: @Sendable (any SecretBackend) -> Bool = {
    $0 is any ObservableSecretBackend
  }

  static let changeChecks: [ConformanceCheck] = [
    ConformanceCheck(name: "changes-are-told", omittedBy: .changes, applies: isObservable) { context in
      let (listener, other) = (try context.listen(), try context.listen())
      let (a, b) = (try context.identifier("a"), try context.identifier("b"))
      // One at a time, so that it holds for a backend that puts several changes into one.
      for (name, change) in context.changesOfTwo(a, b) {
        let before = (listener.mark(), other.mark())
        try change()
        try listener.expectChange(name == "b" ? b : a, since: before.0, "the first subscriber")
        try other.expectChange(name == "b" ? b : a, since: before.1, "the second subscriber")
      }
    },

    ConformanceCheck(name: "each-change-once", omittedBy: [.changes, .exactChanges], applies: isObservable) {
      context in
      let listeners = [try context.listen(), try context.listen()]
      let (a, b) = (try context.identifier("a"), try context.identifier("b"))
      for (_, change) in context.changesOfTwo(a, b) { try change() }
      for listener in listeners { try listener.expectExactly([a, a, a, b]) }
    },

    ConformanceCheck(name: "removing-nothing-is-no-change", omittedBy: .changes, applies: isObservable) {
      context in
      let listener = try context.listen()
      let (absent, last) = (try context.identifier("absent"), try context.identifier("last"))
      let mark = listener.mark()
      try context.backend.remove(absent)
      try context.store("1", last)
      try listener.expectChange(last, since: mark, "the subscriber")
      try context.expect(!listener.changes.contains(absent), "a change was told where there was none")
    },

    ConformanceCheck(name: "late-subscribers-hear-the-rest", omittedBy: .changes, applies: isObservable) {
      context in
      let early = try context.listen()
      let (a, b) = (try context.identifier("a"), try context.identifier("b"))
      try context.store("1", a)
      try early.expectChange(a, since: 0, "the first subscriber")
      let late = try context.listen()
      early.stop()
      try context.store("2", b)
      try late.expectChange(b, since: 0, "a subscriber, after another had stopped")
    },

    ConformanceCheck(
      name: "changes-of-a-transaction",
      omittedBy: [.changes, .transactions],
      applies: { $0 is any ObservableSecretBackend & TransactionalSecretBackend }
    ) { context in
      guard let backend = context.backend as? any TransactionalSecretBackend else { return }
      let listener = try context.listen()
      let (a, b, never) = (
        try context.identifier("a"), try context.identifier("b"), try context.identifier("never")
      )
      try context.expectError([.conflict], from: "a transaction whose closure throws") {
        () throws(SecretError) in
        try backend.transaction { transaction throws(SecretError) in
          try transaction.store(SecretBytes(copying: "0"), for: never, metadata: nil)
          throw SecretError(.conflict, "The check gave up its transaction.")
        }
      }
      let mark = listener.mark()
      try backend.transaction { transaction throws(SecretError) in
        try transaction.store(SecretBytes(copying: "1"), for: a, metadata: nil)
        try transaction.store(SecretBytes(copying: "2"), for: b, metadata: nil)
      }
      try listener.expectChange(a, since: mark, "the subscriber")
      try listener.expectChange(b, since: mark, "the subscriber")
      try context.expect(
        !listener.changes.contains(never),
        "a change was told of a transaction that was given up"
      )
    },
  ]
}

extension ConformanceContext {
  /// Store, overwrite and remove one secret, then store another.
  fileprivate func changesOfTwo(
    _ a: SecretIdentifier,
    _ b: SecretIdentifier
  ) -> [(name: String, change: () throws -> Void)] {
    [
      ("a", { try store("1", a) }), ("a", { try store("2", a) }), ("a", { try backend.remove(a) }),
      ("b", { try store("3", b) }),
    ]
  }

  /// Subscribes to the backend's changes, until the check ends.
  fileprivate func listen() throws -> ChangeListener {
    guard let backend = backend as? any ObservableSecretBackend else {
      throw Expectation("the backend tells of no changes")
    }
    let listener = ChangeListener(backend.changes(), options: options, service: service)
    atEnd { listener.stop() }
    return listener
  }
}

/// Collects what one stream tells about the check's own secrets.
private final class ChangeListener: Sendable {
  private let heard: Mutex<[SecretChange]>
  private let task: Mutex<Task<Void, Never>?>
  private let options: SecretBackendConformance.Options

  init(_ stream: AsyncStream<SecretChange>, options: SecretBackendConformance.Options, service: String) {
    self.options = options
    heard = Mutex([])
    task = Mutex(nil)
    let task = Task { [weak self] in
      for await change in stream {
        if let identifier = change.identifier, !identifier.service.utf8.starts(with: service.utf8) {
          continue
        }
        self?.heard.withLock { $0.append(change) }
      }
    }
    self.task.withLock { $0 = task }
  }

  func stop() { task.withLock { $0?.cancel() } }

  /// What was told so far. A change of everything is not in it.
  var changes: [SecretIdentifier] { heard.withLock { $0.compactMap(\.identifier) } }

  /// Where the next change will be.
  func mark() -> Int { heard.withLock { $0.count } }

  func expectChange(_ identifier: SecretIdentifier, since mark: Int, _ who: String) throws {
    let exact = !options.omissions.contains(.exactChanges)
    try wait("\(who) was not told of a change within \(options.changeDeadline) seconds") { heard in
      heard.dropFirst(mark).contains { $0.identifier == identifier || !exact && $0.identifier == nil }
    }
  }

  func expectExactly(_ expected: [SecretIdentifier]) throws {
    try wait("\(expected.count) changes were not told within \(options.changeDeadline) seconds") {
      $0.count >= expected.count
    }
    // What is told twice may come late, and this cannot be waited for but by waiting.
    DispatchSemaphore(value: 0).wait(seconds: options.echoPause)
    let heard = heard.withLock { $0.map(\.identifier) }
    if heard != expected {
      let names = heard.map { $0?.account ?? "everything" }.joined(separator: ", ")
      throw ConformanceContext.Expectation("what was told is: \(names)")
    }
  }

  private func wait(_ otherwise: String, until isTrue: ([SecretChange]) -> Bool) throws {
    let deadline = DispatchTime.now() + options.changeDeadline
    while !heard.withLock({ isTrue($0) }) {
      if DispatchTime.now() > deadline { throw ConformanceContext.Expectation(otherwise) }
      DispatchSemaphore(value: 0).wait(seconds: 0.002)
    }
  }
}

extension DispatchSemaphore {
  fileprivate func wait(seconds: Double) { _ = wait(timeout: .now() + seconds) }
}
