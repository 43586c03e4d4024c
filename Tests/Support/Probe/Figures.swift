internal import Coffer
internal import CofferConfiguration
internal import CofferCore
internal import CofferVault
internal import Foundation
internal import Synchronization

/// Measures what the documentation says of the library's speed. Needs an optimised build.
struct Figures: Sendable {
  private let path: String
  private let backend: VaultBackend

  init(vault: String) {
    path = vault
    backend = Self.open(vault)
  }

  private static func open(_ path: String) -> VaultBackend {
    var options = VaultOptions()
    options.lockTimeout = .seconds(60)
    return BackendConfiguration.current().vault(at: path, options: options)
  }

  func print() async throws {
    try await reads()
    try readsBesideAWriter()
    try await heartbeat()
    try await items()
    try await largeItems()
  }

  private func line(_ text: String) { Probe.write(text + "\n") }

  private func milliseconds(_ duration: Duration) -> String {
    String(format: "%.3f ms", duration / .milliseconds(1))
  }

  private func identifier(_ number: Int) throws(SecretError) -> SecretIdentifier {
    try SecretIdentifier(service: "figures", account: "\(number % 100)")
  }

  // MARK: Reads

  private func reads() async throws {
    try backend.withTransaction { transaction in
      for number in 0..<100 {
        try transaction.store(SecretBytes("value \(number)"), for: identifier(number))
      }
    }
    for isAsync in [false, true] {
      let one = try await time(tasks: 1, reads: 80_000, isAsync: isAsync)
      let eight = try await time(tasks: 8, reads: 10_000, isAsync: isAsync)
      let name = isAsync ? "async" : "synchronous"
      line(
        "\(name): 1 task × 80,000 reads \(milliseconds(one)), 8 × 10,000 \(milliseconds(eight)), ratio \(one / eight)"
      )
    }
  }

  private func time(tasks: Int, reads: Int, isAsync: Bool) async throws -> Duration {
    let clock = ContinuousClock()
    return try await clock.measure {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for task in 0..<tasks {
          group.addTask {
            for number in 0..<reads {
              let name = try identifier(number + task)
              if isAsync { _ = try await backend.perform { try $0.lookUp(name) } } else { try readNow(name) }
            }
          }
        }
        try await group.waitForAll()
      }
    }
  }

  private func readNow(_ name: SecretIdentifier) throws { _ = try backend.lookUp(name) }

  /// Reads while another thread of the process commits one change after another.
  private func readsBesideAWriter() throws {
    let flag = Flag()
    let (backend, name) = (backend, try identifier(0))
    let writer = Thread {
      while !flag.isSet { try? backend.store(SecretBytes("new"), for: name) }
      flag.end()
    }
    writer.start()
    var times: [Duration] = []
    for _ in 0..<20_000 {
      times.append(try ContinuousClock().measure { try readNow(name) })
    }
    flag.set()
    flag.wait()
    times.sort()
    line(
      "reads beside a writer: median \(milliseconds(times[10_000])), 99 % \(milliseconds(times[19_800])), "
        + "longest \(milliseconds(times[19_999]))")
  }

  // MARK: Heartbeat

  private func heartbeat() async throws {
    for isWriting in [false, true] {
      let (backend, name) = (backend, try identifier(1))
      let transaction = Task.detached {
        try await onAThread {
          try backend.withTransaction { _ in Thread.sleep(forTimeInterval: 3) }
        }
      }
      try await Task.sleep(for: .milliseconds(100))
      let calls = Task {
        try await withThrowingTaskGroup(of: Void.self) { group in
          for _ in 0..<8 {
            group.addTask {
              if isWriting {
                try await backend.perform { try $0.store(SecretBytes("new"), for: name) }
              } else {
                _ = try await backend.perform { try $0.lookUp(name) }
              }
            }
          }
          try await group.waitForAll()
        }
      }
      let start = ContinuousClock.now
      var longest = Duration.zero
      var last = start
      while ContinuousClock.now - start < .seconds(3) {
        try await Task.sleep(for: .milliseconds(20))
        longest = max(longest, .now - last)
        last = .now
      }
      try await calls.value
      _ = try await transaction.value
      line(
        "heartbeat of 20 ms beside 8 waiting \(isWriting ? "stores" : "lookups"): longest pause \(milliseconds(longest))"
      )
    }
  }

  private func onAThread(_ body: @escaping @Sendable () throws -> Void) async throws {
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
      Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
    }
  }

  // MARK: Items

  private func items() async throws {
    func store(_ count: Int) async throws -> Store<LibraryScenario.Item> {
      try await Store(storage: SecretScope(service: "\(count) items", backend: Self.open(path)))
    }
    let clock = ContinuousClock()
    for count in [100, 10_000, 100_000] {
      let many = (0..<count).map { LibraryScenario.Item(id: "\($0 &* 7919 % count)") }
      try await store(count).insert(many)
      var restarted: Store<LibraryScenario.Item>?
      let locked = Self.lockedMemory()
      let load = try await clock.measure { restarted = try await store(count) }
      line("\(count) items: \(Self.lockedMemory() - locked) KiB more of locked memory after the load")
      guard let restarted else { return }
      // The same items in a file of JSON, read by Foundation.
      let file = URL(filePath: path + ".json")
      try JSONEncoder().encode(many).write(to: file)
      var decoded: [LibraryScenario.Item] = []
      let json = try clock.measure {
        decoded = try JSONDecoder().decode([LibraryScenario.Item].self, from: Data(contentsOf: file))
      }
      line(
        "\(count) items: loaded in \(milliseconds(load)), \(load / json) × JSON, in order: "
          + "\(restarted.items == decoded)")
      var times: [[Duration]] = [[], []]
      for number in 0..<100 {
        times[0].append(try await clock.measure { try await restarted.insert(.init(id: "new \(number)")) })
        times[1].append(try await clock.measure { try await restarted.remove(many[number * count / 100]) })
      }
      let medians = times.map { milliseconds($0.sorted()[50]) }
      line("\(count) items: one insert \(medians[0]), one removal \(medians[1])")
    }
  }
}

extension Figures {
  /// The locked memory of this process in KiB. Source: proc_pid_status(5).
  private static func lockedMemory() -> Int {
    let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix("VmLck:") } ?? ""
    return line.split { !$0.isNumber }.first.flatMap { Int($0) } ?? 0
  }

  /// Values of 8 KiB, each of which has an allocation of its own while it is decoded.
  private func largeItems() async throws {
    let count = 20_000
    func store() async throws -> Store<LargeItem> {
      try await Store(storage: SecretScope(service: "large items", backend: Self.open(path)))
    }
    let text = String(repeating: "x", count: 8000)
    try await store().insert((0..<count).map { LargeItem(id: "\($0)", text: text) })
    var loaded: Store<LargeItem>?
    let load = try await ContinuousClock().measure { loaded = try await store() }
    line("\(loaded?.items.count ?? 0) items of 8 KiB: loaded in \(milliseconds(load))")
  }
}

private struct LargeItem: Codable, Sendable, Equatable, Identifiable {
  var id: String
  var text: String
}

/// Tells a thread to end, and waits for it.
private final class Flag: Sendable {
  private let state = Mutex((isSet: false, hasEnded: false))
  var isSet: Bool { state.withLock { $0.isSet } }
  func set() { state.withLock { $0.isSet = true } }
  func end() { state.withLock { $0.hasEnded = true } }
  func wait() { while !state.withLock({ $0.hasEnded }) { Thread.sleep(forTimeInterval: 0.001) } }
}
