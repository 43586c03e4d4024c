import CofferSystem
import CofferTestSupport
import Foundation
import Testing

@Suite(.timeLimit(.minutes(5))) struct WatchThreadTests {
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

  @Test func whatTheThreadReadsIsClosedOnExecutionAndDoesNotBlock() throws {
    let watch = try thread.watch("file", in: open()) {}
    let numbers = try Path.names(inDirectory: "/proc/self/fd").compactMap { Int32($0) }.filter { number in
      (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(number)"))
        == "anon_inode:inotify"
    }
    // Those of tests that run at the same time too, unless they are closed by now.
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

  @Test func aHandlerMayReleaseItsOwnWatch() async throws {
    final class Holder: @unchecked Sendable {  // set before the first change
      var watch: (any DirectoryWatch)?
    }
    let holder = Holder()
    let count = Count()
    holder.watch = try thread.watch("file", in: open()) {
      holder.watch = nil
      count.add()
    }
    try directory.write("1", to: "file")
    try await eventually("no change was reported") { count.value > 0 }
    try await eventually("the thread did not end") { !thread.isRunning }
  }

  /// The kernel queues a limited number of events, and then only tells that it lost some.
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
    // The thread reads no events now. Two files in turn, because the same event again is not queued.
    for index in 0..<size { #expect(chmod(directory.file(index % 2 == 0 ? "a" : "b"), 0o640) == 0) }
    #expect(chmod(directory.file("file"), 0o600) == 0)
    filled.signal()
    try waitUntil("the loss was not reported") { count.value == 2 }
    withExtendedLifetime(watch) {}
  }
}
