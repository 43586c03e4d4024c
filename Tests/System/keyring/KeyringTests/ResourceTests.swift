#if Keyring
import CofferCore
import CofferKeyring
import CofferTestSupport
import Foundation
import Testing

/// Each test runs in a process of its own, so that it measures no other test.
@Suite(.needsKeyring) struct ResourceTests {
  @Test func tenThousandLookupsDoNotUseMoreMemory() async {
    await #expect(processExitsWith: .success) {
      let keyring = try await PrivateKeyring(.encrypted)
      let backend = keyring.backend()
      try backend.write(String(repeating: "x", count: 1000), "alice")
      func lookUp(_ count: Int) throws {
        for round in 0..<count {
          _ = try backend.text("alice")
          if round.isMultiple(of: 10) { _ = try backend.text("missing") }
        }
      }
      try lookUp(2000)  // fills caches and the allocator's arenas
      let before = try residentKilobytes()
      try lookUp(10_000)
      let growth = try residentKilobytes() - before
      // If each lookup leaked one message or secret, this would be more than 10,000 KB.
      #expect(growth < 4000, "\(growth) KB")
    }
  }

  @Test func aReleasedBackendLeavesNoFilesOpen() async {
    await #expect(processExitsWith: .success) {
      let keyring = try await PrivateKeyring(.encrypted)
      func use() throws {
        let backend = keyring.backend()
        try backend.write("x", "alice")
        _ = backend.changes()
      }
      try await expectNoFilesLeftOpen(by: use)
    }
  }

  @Test func aWatchThatEndsDuringChangesLeavesNoFilesOpen() async {
    await #expect(processExitsWith: .success) {
      let keyring = try await PrivateKeyring(storingWith: "repeats-signals")
      let writer = keyring.backend()
      var count = 0
      try await expectNoFilesLeftOpen {
        let changes = keyring.backend().changes()
        count += 1
        try writer.write("x", "name \(count)")
        usleep(10_000)
        withExtendedLifetime(changes) {}
      }
    }
  }

  /// The main loop of the program may never run.
  @Test func aReleasedConnectionLeavesNothingToTheMainLoop() async {
    await #expect(processExitsWith: .success) {
      let keyring = try await PrivateKeyring(.encrypted)
      try keyring.backend().write("x", "alice")
      typealias IsPending = @convention(c) (OpaquePointer?) -> CInt
      let isPending = unsafeBitCast(
        try #require(dlsym(nil, "g_main_context_pending")), to: IsPending.self)
      // The thread of GDBus releases its reference later.
      try await Task.sleep(for: .milliseconds(200))
      #expect(isPending(nil) == 0)
    }
  }

  @Test func secretsOfThePortalLeaveNoFilesOpen() async {
    await #expect(processExitsWith: .success) {
      let keyring = try await PrivateKeyring(startsDaemon: false)
      try keyring.start(
        "scripted_portal", [keyring.path("portal.log"), String(repeating: "5a", count: 64), "twice"])
      let portal = SecretPortal(environment: keyring.environment)
      try await eventually("the scripted portal did not start") {
        try portal.isAvailable(timeout: .seconds(5))
      }
      try await expectNoFilesLeftOpen { _ = try portal.retrieve(token: nil, timeout: .seconds(30)) }
    }
  }

  @Test func thirtyRestartsOfTheDaemonLeaveNoFilesOpen() async {
    await #expect(processExitsWith: .success) {
      let keyring = try await PrivateKeyring(.encrypted)
      let backend = keyring.backend()
      let changes = backend.changes()
      func restart(_ count: Int) async throws {
        for _ in 0..<count {
          try await keyring.restartDaemon()
          try backend.write("x", "alice")
        }
      }
      try await restart(3)
      let before = try await openFiles()
      try await restart(30)
      try await expectNoMoreFilesOpen(than: before)
      withExtendedLifetime(changes) {}
    }
  }
}

private func residentKilobytes() throws -> Int {
  let text = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
  let pages = try #require(text.split(separator: " ").dropFirst().first.flatMap { Int($0) })
  return pages * Int(getpagesize()) / 1024
}

private func expectNoFilesLeftOpen(by use: () throws -> Void) async throws {
  for _ in 0..<5 { try use() }
  let before = try await openFiles()
  for _ in 0..<50 { try use() }
  try await expectNoMoreFilesOpen(than: before, allowing: 5)
}

private func expectNoMoreFilesOpen(than before: [String], allowing more: Int = 0) async throws {
  var now = try await openFiles()
  for _ in 0..<600 where now.count > before.count + more {
    try await Task.sleep(for: .milliseconds(100))
    now = try await openFiles()
  }
  #expect(now.count <= before.count + more, "\(now.sorted()) are open, and \(before.sorted()) were before")
}

/// What the descriptors of this process lead to, without timers: Dispatch opens one for each clock, when a pause needs
/// it.
private func openFiles() async throws -> [String] {
  // The first pause opens more.
  try await Task.sleep(for: .milliseconds(1))
  let files = FileManager.default
  return try files.contentsOfDirectory(atPath: "/proc/self/fd").compactMap {
    try? files.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
  }.filter { !$0.contains("timerfd") }
}
#endif
