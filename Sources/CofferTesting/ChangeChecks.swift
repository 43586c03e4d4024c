internal import CofferCore
internal import Synchronization

extension Check {
  static let changeChecks: [Check] = [
    Check(name: "changes-are-reported", features: .changes) { context, _, _ in
      let subscribers = context.twoSubscribers()
      // Waits after each change, because a backend may coalesce changes that follow each other.
      for (identifier, change) in try context.fourChanges() {
        let counts = subscribers.map(\.count)
        try change()
        for (subscriber, count) in zip(subscribers, counts) {
          try subscriber.expect(identifier, after: count)
        }
      }
    },

    Check(name: "each-change-once", features: .changes, omittedBy: .exactChanges) { context, _, _ in
      let subscribers = context.twoSubscribers()
      let changes = try context.fourChanges()
      for (_, change) in changes { try change() }
      for subscriber in subscribers { try subscriber.expectExactly(changes.map(\.identifier)) }
    },

    Check(name: "removing-nothing-is-no-change", features: .changes) { context, backend, _ in
      let subscriber = Subscriber("a subscriber", context)
      let (absent, last) = try context.identifiers("absent", "last")
      let count = subscriber.count
      try backend.remove(absent)
      try context.store("1", last)
      try subscriber.expect(last, after: count)
      try subscriber.expectNone(of: absent, "the removal of an absent secret")
    },

    Check(name: "late-subscribers-get-later-changes", features: .changes) { context, _, a in
      let early = Subscriber("the first subscriber", context)
      let b = try context.identifier("b")
      try context.store("1", a)
      try early.expect(a, after: 0)
      let late = Subscriber("a subscriber, after another one has stopped", context)
      early.stop()
      try context.store("2", b)
      try late.expect(b, after: 0)
    },

    Check(name: "changes-of-a-transaction", features: [.changes, .transactions]) { context, backend, a in
      let subscriber = Subscriber("a subscriber", context)
      let (b, never) = try context.identifiers("b", "never")
      try context.cancelTransaction { transaction throws(SecretError) in
        try transaction.store("0", never)
      }
      let count = subscriber.count
      try backend.withTransaction { transaction throws(SecretError) in
        try transaction.store("1", a)
        try transaction.store("2", b)
      }
      try subscriber.expect(a, after: count)
      try subscriber.expect(b, after: count)
      try subscriber.expectNone(of: never, "a cancelled transaction")
    },

    Check(name: "changes-of-versions", features: [.changes, .history]) { context, backend, a in
      let subscriber = Subscriber("a subscriber", context)
      let b = try context.identifier("b")
      try context.store(["1", "2"], in: a)
      try backend.remove(a)
      try context.store("3", b)
      try subscriber.expect(b, after: 0)
      for (identifier, change) in [
        (a, { try backend.restore(a) }),
        (a, { try backend.erase(a) }),
      ] as [(SecretIdentifier, () throws -> Void)] {
        let count = subscriber.count
        try change()
        try subscriber.expect(identifier, after: count)
      }
    },
  ]
}

extension ConformanceContext {
  /// Stores, overwrites and removes one secret, then stores another.
  fileprivate func fourChanges() throws -> [(identifier: SecretIdentifier, change: () throws -> Void)] {
    let (a, b) = try identifiers("a", "b")
    return [
      (a, { try store("1", a) }), (a, { try store("2", a) }), (a, { try backend.remove(a) }),
      (b, { try store("3", b) }),
    ]
  }

  fileprivate func twoSubscribers() -> [Subscriber] {
    ["the first subscriber", "the second subscriber"].map { Subscriber($0, self) }
  }
}

/// Collects the changes of the check's own secrets from one stream, until it is released.
private final class Subscriber: Sendable {
  private final class Log: Sendable { let changes = Mutex<[SecretChange]>([]) }

  private let name: String
  private let options: SecretBackendConformance.Options
  private let log = Log()
  private let task: Task<Void, Never>

  init(_ name: String, _ context: ConformanceContext) {
    (self.name, options) = (name, context.options)
    let stream = context.backend.changes()
    task = Task(executorPreference: ConformanceExecutor.shared) { [log] in
      for await change in stream where change.identifier.map(context.isOwn) ?? true {
        log.changes.withLock { $0.append(change) }
      }
    }
  }

  deinit { stop() }

  func stop() { task.cancel() }

  private var changes: [SecretIdentifier?] { log.changes.withLock { $0.map(\.identifier) } }

  var count: Int { changes.count }

  /// Waits for a change of `identifier` among those after the first `count`.
  func expect(_ identifier: SecretIdentifier, after count: Int) throws {
    let isExact = options.omissions.contains(.exactChanges) == false
    try wait(for: "a change of “\(identifier.account)”") { changes in
      changes.dropFirst(count).contains { $0 == identifier || !isExact && $0 == nil }
    }
  }

  func expectNone(of identifier: SecretIdentifier, _ situation: String) throws {
    if changes.contains(identifier) {
      throw Expectation("\(name), after \(situation)", expected: "no change", found: "a change")
    }
  }

  func expectExactly(_ expected: [SecretIdentifier]) throws {
    try wait(for: "\(expected.count) changes") { $0.count >= expected.count }
    // Gives a duplicate time to arrive.
    threadSleep(options.duplicateInterval)
    let found = changes
    func text(_ changes: [SecretIdentifier?]) -> String {
      changes.map { $0?.account ?? "everything" }.joined(separator: ", ")
    }
    if found != expected { throw Expectation("\(name), the changes", expected: text(expected), found: text(found)) }
  }

  private func wait(for expected: String, until isTrue: ([SecretIdentifier?]) -> Bool) throws {
    let end = ContinuousClock.now + options.changeTimeout
    while !isTrue(changes) {
      if .now > end {
        throw Expectation(name, expected: "\(expected) within \(options.changeTimeout)", found: "\(count) changes")
      }
      threadSleep(.milliseconds(2))
    }
  }
}
