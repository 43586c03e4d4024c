import CofferCore
import Dispatch
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(30))) struct DeadlineLockTests {
  private func error(_ body: () throws(SecretError) -> Void) -> SecretError? {
    do throws(SecretError) {
      try body()
      return nil
    } catch {
      return error
    }
  }

  private func code(_ body: () throws(SecretError) -> Void) -> SecretError.Code? { error(body)?.code }

  @Test func theLockExcludesOtherThreads() throws {
    let lock = DeadlineLock()
    let isInside = Atomic(false)
    DispatchQueue.concurrentPerform(iterations: 64) { _ in
      for _ in 0..<200 {
        let failure = code { () throws(SecretError) in
          try lock.withLock(timeout: .seconds(60)) {
            let wasInside = isInside.exchange(true, ordering: .acquiringAndReleasing)
            #expect(!wasInside)
            isInside.store(false, ordering: .releasing)
          }
        }
        #expect(failure == nil)
      }
    }
  }

  @Test func aThreadThatHoldsTheLockGetsConflict() throws {
    let lock = DeadlineLock()
    try lock.withLock(timeout: .seconds(60)) { () throws(SecretError) in
      #expect(code { () throws(SecretError) in try lock.withLock(timeout: .seconds(60)) {} } == .conflict)
      // The failed attempt did not release the lock.
      #expect(code { () throws(SecretError) in try lock.withLock(timeout: .seconds(0)) {} } == .conflict)
    }
    #expect(code { () throws(SecretError) in try lock.withLock(timeout: .seconds(60)) {} } == nil)
  }

  @Test(arguments: [0, 0.01, 0.25])
  func waitingEndsAtTheTimeout(seconds: Double) throws {
    let lock = DeadlineLock()
    let (held, release) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    DispatchQueue(label: "holder").async {
      let failure = code { () throws(SecretError) in
        try lock.withLock(timeout: .seconds(60)) {
          held.signal()
          release.wait()
        }
      }
      #expect(failure == nil)
    }
    held.wait()
    let start = ContinuousClock.now
    #expect(code { () throws(SecretError) in try lock.withLock(timeout: .seconds(seconds)) {} } == .timedOut)
    #expect(ContinuousClock.now - start >= .seconds(seconds * 0.9))
    let late = error { () throws(SecretError) in try lock.withLock(timeout: .nanoseconds(93_640_322)) {} }
    #expect(late?.reason == "Another thread kept the store busy for 0.1 seconds.")
    release.signal()
    #expect(code { () throws(SecretError) in try lock.withLock(timeout: .seconds(60)) {} } == nil)
  }

  @Test func anAttemptWithoutWaitingTellsTheHolderFromOtherThreads() throws {
    let lock = DeadlineLock()
    let (held, release) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    DispatchQueue(label: "holder").async {
      let failure = code { () throws(SecretError) in
        _ = try lock.withLockIfFree { () throws(SecretError) in
          #expect(code { () throws(SecretError) in _ = try lock.withLockIfFree {} } == .conflict)
          #expect(code { () throws(SecretError) in try lock.withLock(timeout: .seconds(60)) {} } == .conflict)
          held.signal()
          release.wait()
        }
      }
      #expect(failure == nil)
      held.signal()
    }
    held.wait()
    #expect(try lock.withLockIfFree { true } == nil)
    release.signal()
    held.wait()
    #expect(try lock.withLockIfFree { true } == true)
  }

  @Test func anErrorReleasesTheLock() {
    let lock = DeadlineLock()
    #expect(
      code { () throws(SecretError) in
        try lock.withLock(timeout: .seconds(1)) { () throws(SecretError) in throw SecretError(.io, "x") }
      } == .io
    )
    #expect(code { () throws(SecretError) in try lock.withLock(timeout: .seconds(60)) {} } == nil)
  }
}
