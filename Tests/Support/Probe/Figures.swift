internal import Coffer
internal import CofferCore
internal import CofferVault
internal import Foundation

/// Compares the library with the raw work that it cannot avoid, or with the same work without the part to be measured.
/// Needs an optimised build.
///
/// Prints a line for each comparison: the work, what it is compared with, and the nanoseconds of each round of both,
/// separated by tabs. The two take turns, so that a busy machine slows both.
struct Figures {
  private static let many = 100_000
  private static let key = SecretBytes([UInt8](repeating: 7, count: VaultKey.length))
  private let directory: String
  private let value = SecretBytes([UInt8](repeating: 9, count: 40))

  init(directory: String) { self.directory = directory }

  func print() async throws {
    let (small, large) = (try vault("small"), try vault("large"))
    for (backend, count) in [(small, 10), (large, Self.many)] {
      try fill(backend, count)
      try await changes(backend, count)
    }
    try await lookups(large)
    try await openings("large", among: Self.many, beside: "small", "the same among 10")
    try await histories()
    try await wholeVaults(large)
    try await tasks(small)
    try await besideAWriter(small)
    try await items(count: Self.many, text: "")
    try await items(count: 10_000, text: String(repeating: "x", count: 8000))
  }

  private func compare(
    _ work: String, beside other: String, rounds: Int, _ one: () async throws -> Void,
    _ another: () async throws -> Void
  ) async throws {
    let clock = ContinuousClock()
    var times: [[Duration]] = [[], []]
    for _ in 0..<rounds {
      times[0].append(try await clock.measure(one))
      times[1].append(try await clock.measure(another))
    }
    let columns = times.map { $0.map { "\(Int64($0 / .nanoseconds(1)))" }.joined(separator: ",") }
    Probe.write(([work, other] + columns).joined(separator: "\t") + "\n")
  }

  // MARK: Vaults

  private func path(_ name: String) -> String { "\(directory)/\(name).vault" }

  private func vault(_ name: String, history: HistoryLimit = .standard) throws -> VaultBackend {
    try VaultBackend.create(at: path(name), credential: .key(Self.key), history: history)
    return VaultBackend(path: path(name), key: Self.key)
  }

  private func name(_ index: Int) throws(SecretError) -> SecretIdentifier {
    try SecretIdentifier(service: "figures", account: "account \(index)")
  }

  private func fill(_ backend: VaultBackend, _ count: Int) throws {
    try backend.withTransaction { transaction throws(SecretError) in
      for index in 0..<count { try transaction.store(value, for: name(index)) }
    }
  }

  /// Calls `body` with the next indexes below `count`, in another order than that of the file.
  private func each(_ rounds: Int, below count: Int, _ index: inout Int, _ body: (Int) throws -> Void)
    rethrows
  {
    for _ in 0..<rounds {
      index = (index + 7919) % count
      try body(index)
    }
  }

  private func read(_ backend: VaultBackend, _ index: Int) throws {
    if try backend.lookUp(name(index)) == nil { Probe.fail("a secret is missing") }
  }

  /// A round is long enough for several rewrites of the file.
  private func changes(_ backend: VaultBackend, _ count: Int) async throws {
    let raw = RawCommit(path: directory + "/raw")
    let frame = [UInt8](repeating: 6, count: 300)
    var index = 0
    try await compare(
      "changes in an open vault of \(count) secrets, rewrites included", beside: "their raw input and output",
      rounds: 5
    ) {
      try each(1000, below: count, &index) { try backend.store(value, for: name($0)) }
    } _: {
      for _ in 0..<1000 { raw.commit(frame) }
    }
  }

  private func lookups(_ backend: VaultBackend) async throws {
    var (raw, index) = (RawSodium(size: 16_384), 0)
    try await compare(
      "lookups in an open vault of \(Self.many)", beside: "opening a block of 16 KB for each with libsodium",
      rounds: 101
    ) {
      try each(100, below: Self.many, &index) { try read(backend, $0) }
    } _: {
      for _ in 0..<100 { raw.open() }
    }
  }

  private func openings(_ one: String, among count: Int, beside other: String, _ words: String) async throws {
    func open(_ vault: String) throws { try read(VaultBackend(path: path(vault), key: Self.key), 5) }
    try await compare(
      "opening a vault of \(count) and one lookup", beside: words, rounds: 101, { try open(one) },
      { try open(other) })
  }

  private func histories() async throws {
    let count = 200
    let both = (try vault("history"), try vault("none", history: .none))
    for backend in [both.0, both.1] { try fill(backend, count) }
    var indexes = (0, 0)
    let words = "the same without history"
    try await compare("changes in a vault with a history of 10 versions", beside: words, rounds: 12) {
      try each(count, below: count, &indexes.0) { try both.0.store(value, for: name($0)) }
    } _: {
      try each(count, below: count, &indexes.1) { try both.1.store(value, for: name($0)) }
    }
    try await compare("lookups in a vault with a history of 10 versions", beside: words, rounds: 101) {
      try each(100, below: count, &indexes.0) { try read(both.0, $0) }
    } _: {
      try each(100, below: count, &indexes.1) { try read(both.1, $0) }
    }
    try await openings("history", among: count, beside: "none", words)
  }

  private func wholeVaults(_ large: VaultBackend) async throws {
    var (raw, round) = (RawSodium(size: 64), 0)
    func sealAll() { for _ in 0..<Self.many { raw.seal() } }
    try await compare(
      "storing \(Self.many) secrets in one transaction", beside: "sealing as many values with libsodium",
      rounds: 5
    ) {
      round += 1
      try fill(vault("filled \(round)"), Self.many)
    } _: {
      sealAll()
    }
    try await compare(
      "a new master key for \(Self.many) secrets", beside: "copying the file and sealing as many values",
      rounds: 5
    ) {
      try large.rekey()
    } _: {
      copyDurably(path("large"), to: directory + "/raw")
      sealAll()
    }
  }

  // MARK: Threads

  private func tasks(_ backend: VaultBackend) async throws {
    func run(tasks: Int) async throws {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<tasks {
          group.addTask { for number in 0..<(80_000 / tasks) { _ = try backend.lookUp(name(number % 10)) } }
        }
        try await group.waitForAll()
      }
    }
    try await compare(
      "80,000 lookups by 8 tasks", beside: "as many by one task", rounds: 7, { try await run(tasks: 8) },
      { try await run(tasks: 1) })
  }

  private func besideAWriter(_ backend: VaultBackend) async throws {
    func run() throws { for number in 0..<5000 { try read(backend, number % 10) } }
    try await compare("lookups beside a thread that changes the vault", beside: "lookups alone", rounds: 7) {
      let (value, name) = (value, try name(0))
      let writer = Task.detached { while !Task.isCancelled { try backend.store(value, for: name) } }
      try run()
      writer.cancel()
      try await writer.value
    } _: {
      try run()
    }
  }

  // MARK: Items

  private struct Item: Codable, Sendable, Equatable, Identifiable {
    var id: String
    var sent = Date().timeIntervalSince1970
    var text: String
  }

  /// The same items in a vault, and in a file of JSON that Foundation reads.
  private func items(count: Int, text: String) async throws {
    let scope = SecretScope(service: "items", backend: try vault("items of \(text.count) bytes"))
    let many = (0..<count).map { Item(id: "\($0 &* 7919 % count)", text: text) }
    try await Store<Item>(storage: scope).insert(many)
    let file = URL(filePath: directory + "/items.json")
    try JSONEncoder().encode(many).write(to: file)
    let words = text.isEmpty ? "" : " of 8 KB"
    try await compare(
      "loading a Store of \(count) items\(words)", beside: "decoding them from one file of JSON", rounds: 5
    ) {
      guard try await Store<Item>(storage: scope).items == many else { Probe.fail("the items differ") }
    } _: {
      let decoded = try JSONDecoder().decode([Item].self, from: Data(contentsOf: file))
      guard decoded == many else { Probe.fail("the items differ") }
    }
  }
}
