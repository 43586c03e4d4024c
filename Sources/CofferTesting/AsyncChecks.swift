internal import CofferCore
internal import Dispatch
internal import Synchronization

extension ConformanceCheck {
  static let asyncChecks: [ConformanceCheck] = [
    ConformanceCheck(name: "async-calls-agree") { context in
      let identifier = try context.identifier("async")
      try context.await {
        try await context.backend.store(SecretBytes(copying: "1"), for: identifier)
        let found = try await context.backend.lookUp(identifier)?.array
        try ConformanceContext.expect(found, toBe: Array("1".utf8), "an async lookup")
        try context.expect(
          try await context.backend.items(inService: context.service).count == 1,
          "an async list has not one item"
        )
        try context.expect(
          try await context.backend.item(identifier)?.identifier == identifier,
          "an async item(_:) has not the item"
        )
      }
      try context.expectValue("1", identifier, "after an async store")
      try context.await {
        try context.expect(
          try await context.backend.remove(identifier),
          "an async remove says there was none"
        )
        try context.expect(!(try await context.backend.remove(identifier)), "a second one says there was one")
        let found = try await context.backend.lookUp(identifier)?.array
        try ConformanceContext.expect(found, toBe: nil, "an async lookup after a remove")
      }
    }
  ]
}

extension ConformanceContext {
  /// Waits, on the check's own thread, for `body`.
  fileprivate func await(_ body: @escaping @Sendable () async throws -> Void) throws {
    let done = DispatchSemaphore(value: 0)
    let failure = Failure()
    Task {
      do { try await body() } catch { failure.note(error) }
      done.signal()
    }
    if done.wait(timeout: .now() + options.checkDeadline) == .timedOut {
      throw Expectation("async calls had not ended after \(options.checkDeadline) seconds")
    }
    try failure.rethrow()
  }

  private final class Failure: Sendable {
    private let error = Mutex<(any Error)?>(nil)
    func note(_ new: any Error) { error.withLock { $0 = new } }
    func rethrow() throws { if let error = error.withLock({ $0 }) { throw error } }
  }
}
