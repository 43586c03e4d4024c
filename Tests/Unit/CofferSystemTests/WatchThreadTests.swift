import CofferSystem
import CofferTestSupport
import Foundation
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(30))) struct WatchThreadTests {
  let thread = WatchThread()
  let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func open(_ name: String? = nil) throws -> Descriptor {
    try Descriptor(opening: name.map(directory.file) ?? directory.path, O_RDONLY | O_DIRECTORY)
  }

  @Test func aChangeOfTheFileIsReportedAndThatOfAnotherIsNot() async throws {
    let (mine, others) = (Count(), Count())
    let one = try thread.watch("mine", in: open()) { mine.add() }
    let two = try thread.watch("other", in: open()) { others.add() }
    try directory.write("1", to: "mine")
    try await eventually("no change was reported") { mine.value > 0 }
    #expect(others.value == 0)
    try directory.write("1", to: "other")
    try await eventually("no change was reported") { others.value > 0 }
    withExtendedLifetime((one, two)) {}
  }

  @Test(.enabled(if: geteuid() == 0, "only root can act as another user"))
  func aDirectoryThatMayNotBeReadIsNotWatched() throws {
    let place = try open()
    let failure = try withFileAccess(ofUser: 54_321) { [thread] in
      do throws(FileSystemError) { _ = try thread.watch("file", in: place) {} } catch { return error.number }
      return 0
    }
    #expect(failure == EACCES && thread.watchCount == 0 && !thread.isRunning)
  }

  /// The kernel has one watch for both.
  @Test func aWatchOutlivesAnotherOneOfTheSameDirectory() async throws {
    let (mine, others) = (Count(), Count())
    let one = try thread.watch("mine", in: open()) { mine.add() }
    do { withExtendedLifetime(try thread.watch("other", in: open()) { others.add() }) {} }
    try directory.write("1", to: "mine")
    try await eventually("no change was reported") { mine.value > 0 }
    #expect(one.isAlive && others.value == 0)
    let before = mine.value
    try directory.write("2", to: "mine")
    try await eventually("no second change was reported") { mine.value > before }
  }

  @Test func theThreadEndsWithTheLastWatchAndStartsAgain() async throws {
    for _ in 0..<3 {
      let changes = Count()
      do {
        let watches = try (0..<50).map { _ in try thread.watch("file", in: open()) { changes.add() } }
        let period = try thread.every(.seconds(600)) {}
        #expect(thread.isRunning && thread.watchCount == 51)
        try directory.write("1", to: "file")
        try await eventually("a watch reported nothing") { changes.value >= 50 }
        withExtendedLifetime((watches, period)) {}
      }
      #expect(thread.watchCount == 0)
      try await eventually("the thread did not end") { !thread.isRunning }
    }
  }

  @Test func aReleasedWatchReportsNothingAndTheOthersGoOn() async throws {
    let (kept, released) = (Count(), Count())
    let watch = try thread.watch("file", in: open()) { kept.add() }
    do { _ = try thread.watch("file", in: open()) { released.add() } }
    try directory.write("1", to: "file")
    try await eventually("no change was reported") { kept.value > 0 }
    #expect(released.value == 0)
    withExtendedLifetime(watch) {}
  }

  @Test func aPeriodIsReportedAgainAndAgain() async throws {
    let count = Count()
    let watch = try thread.every(.milliseconds(5)) { count.add() }
    try await eventually("the period did not end three times") { count.value >= 3 }
    withExtendedLifetime(watch) {}
  }

  @Test func aPeriodThatBeginsWhileTheThreadWaitsIsReported() async throws {
    let watch = try thread.watch("file", in: open()) {}
    // By now, or soon, the thread waits only for events.
    try await Task.sleep(for: .milliseconds(50))
    let counts = [Count(), Count()]
    var periods: [any AnyObject & Sendable] = []
    for count in counts { periods.append(try thread.every(.milliseconds(5)) { count.add() }) }
    try await eventually("a period did not end") { counts.allSatisfy { $0.value > 0 } }
    // Each period is released separately.
    periods.removeFirst()
    let before = counts[1].value
    try await eventually("the other period did not go on") { counts[1].value > before + 1 }
    #expect(thread.watchCount == 2 && watch.isAlive)
    withExtendedLifetime((watch, periods)) {}
  }

  @Test func theThreadUsesLittleOfAProcessorWhileItWaits() async throws {
    try directory.write("", to: "file")
    final class Times: Sendable { let values = Mutex<[Double]>([]) }
    let (times, failures) = (Times(), Count())
    let watch = try thread.watch("file", in: open()) {
      do {
        let time = try processorTime()
        times.values.withLock { $0.append(time) }
      } catch { failures.add() }
    }
    // Starting a period ends a wait of the thread. The period itself does not end during the test.
    let period = try thread.every(.seconds(600)) {}
    for (count, mode) in [(1, mode_t(0o640)), (2, 0o600)] {
      try await Task.sleep(for: .milliseconds(700))
      #expect(chmod(directory.file("file"), mode) == 0)
      try await eventually("the change was not reported") { times.values.withLock { $0.count } == count }
    }
    let used = times.values.withLock { ($0.last ?? 1) - ($0.first ?? 0) }
    #expect(used < 0.05 && failures.value == 0)
    withExtendedLifetime((watch, period)) {}
  }

  @Test func whatTheThreadReadsIsClosedOnExecutionAndDoesNotBlock() throws {
    let watch = try thread.watch("file", in: open()) {}
    let numbers = try Path.names(inDirectory: "/proc/self/fd").compactMap { Int32($0) }.filter { number in
      (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(number)"))
        == "anon_inode:inotify"
    }
    // Some may belong to tests that run at the same time. Those may be closed by now, and are left out.
    let flags = numbers.map { (fcntl($0, F_GETFD), fcntl($0, F_GETFL)) }.filter { $0.0 >= 0 && $0.1 >= 0 }
    #expect(!flags.isEmpty && flags.allSatisfy { $0.0 == FD_CLOEXEC && $0.1 & O_NONBLOCK != 0 })
    withExtendedLifetime(watch) {}
  }

  @Test func theEndOfADirectoryIsReported() async throws {
    try directory.makeDirectory("sub")
    let count = Count()
    let watch = try thread.watch("file", in: open("sub")) { count.add() }
    #expect(watch.isAlive)
    try FileManager.default.removeItem(atPath: directory.file("sub"))
    try await eventually("the end was not reported") { count.value > 0 && !watch.isAlive }
  }

  @Test func theKernelWatchesADirectoryUntilTheLastWatchOfIt() throws {
    for name in ["a", "b"] { try directory.makeDirectory(name) }
    /// The watches of this process on a directory, from the inode numbers in /proc/PID/fdinfo.
    func count(_ name: String) throws -> Int {
      let inode = String(try #require(FileStatus(of: directory.file(name))).inode, radix: 16)
      return try Path.names(inDirectory: "/proc/self/fdinfo").reduce(0) { sum, number in
        // `nil` if another test has closed it.
        let text = FileManager.default.contents(atPath: "/proc/self/fdinfo/\(number)") ?? Data()
        return sum
          + String(decoding: text, as: UTF8.self).split(separator: "\n").count {
            $0.hasPrefix("inotify ") && $0.contains(" ino:\(inode) ")
          }
      }
    }
    let kept = try thread.watch("x", in: open("a")) {}
    do {
      let released = [try thread.watch("x", in: open("b")) {}, try thread.watch("y", in: open("b")) {}]
      #expect(try count("a") == 1 && count("b") == 1)
      withExtendedLifetime(released) {}
    }
    #expect(try count("a") == 1 && count("b") == 0)
    withExtendedLifetime(kept) {}
  }

  @Test func theThreadEndsWithTheLastPeriod() async throws {
    do {
      let period = try thread.every(.seconds(600)) {}
      // By now, or soon, the thread waits.
      try await Task.sleep(for: .milliseconds(50))
      withExtendedLifetime(period) {}
    }
    try await eventually("the thread did not end") { !thread.isRunning }
  }

  @Test func aHandlerMayReleaseItsOwnWatch() async throws {
    final class Holder: @unchecked Sendable {
      let watch = Mutex<(any DirectoryWatch)?>(nil)
    }
    let holder = Holder()
    let count = Count()
    try holder.watch.withLock { held in
      held = try thread.watch("file", in: open()) {
        holder.watch.withLock { $0 = nil }
        count.add()
      }
    }
    try directory.write("1", to: "file")
    try await eventually("no change was reported") { count.value > 0 }
    try await eventually("the thread did not end") { !thread.isRunning }
  }

  /// The kernel queues a limited number of events, and then reports only that it lost some.
  @Test func lostEventsAreReportedAsAChange() throws {
    let limit = try String(contentsOfFile: "/proc/sys/fs/inotify/max_queued_events", encoding: .utf8)
    let size = try #require(Int(limit.trimmingCharacters(in: .newlines)))
    for name in ["file", "a", "b"] { try directory.write("", to: name) }
    let (begun, filled) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let count = Count()
    let watch = try thread.watch("file", in: open()) {
      if count.value == 0 {
        begun.signal()
        filled.wait()
      }
      count.add()
    }
    #expect(chmod(directory.file("file"), 0o640) == 0)
    begun.wait()
    // The thread is not reading. The kernel merges equal events, so two files alternate.
    for index in 0..<size { #expect(chmod(directory.file(index % 2 == 0 ? "a" : "b"), 0o640) == 0) }
    #expect(chmod(directory.file("file"), 0o600) == 0)
    filled.signal()
    try waitUntil("the loss was not reported") { count.value >= 2 }
    withExtendedLifetime(watch) {}
  }
}
