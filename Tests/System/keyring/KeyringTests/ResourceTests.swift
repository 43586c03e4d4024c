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
      for _ in 0..<5 { try use() }
      let before = try openFiles()
      for _ in 0..<50 { try use() }
      try await eventually("\(kinds()) \(try openFiles()) files are open, and \(before) were before") {
        try openFiles() <= before + 5
      }
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
      let before = try openFiles()
      let kindsBefore = kinds()
      try await restart(30)
      try await eventually("\(kindsBefore) then \(kinds()) \(try openFiles()) files are open, and \(before) were before") {
        // A leak at each restart would be at least 30.
        try openFiles() <= before + 15
      }
      withExtendedLifetime(changes) {}
    }
  }
}

private func residentKilobytes() throws -> Int {
  let text = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
  let pages = try #require(text.split(separator: " ").dropFirst().first.flatMap { Int($0) })
  return pages * Int(getpagesize()) / 1024
}

private func kinds() -> String {
  var counts: [String: Int] = [:]
  for name in (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? [] {
    let link = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(name)")) ?? ""
    counts[String(link.prefix(6)) + (link.hasPrefix("anon") ? String(link.suffix(8)) : ""), default: 0] += 1
  }
  let threads = ((try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []).map {
    ((try? String(contentsOfFile: "/proc/self/task/\($0)/comm", encoding: .utf8)) ?? "").trimmingCharacters(in: .newlines)
  }
  return "\(counts.sorted { $0.key < $1.key }) \(threads)"
}

private func openFiles() throws -> Int {
  try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
}
#endif
