import CBenchmarkSodium
import Coffer
import Glibc

/// Prints a table of times and budgets. The argument is the directory of the vaults; by default, the current one.
@main struct CofferBenchmarks {
  static let key = SecretBytes([UInt8](repeating: 7, count: 32))

  static func main() throws {
    guard sodium_init() >= 0 else { fatalError("libsodium could not be initialized.") }
    if CommandLine.arguments.count == 3 { return try HistoryBenchmark.read(CommandLine.arguments[2]) }
    let directory = CommandLine.arguments.dropFirst().first ?? "."
    print("| work | Coffer | against | ratio | budget | |")
    print("|---|---|---|---|---|---|")
    let counts = [10, 100_000]
    let paths = counts.map { "\(directory)/benchmark-\($0)" }
    for (count, path) in zip(counts, paths) {
      for suffix in ["vault", "raw"] { unlink("\(path).\(suffix)") }
      try VaultBackend.create(
        at: "\(path).vault", credential: .key(SecretBytes([UInt8](repeating: 7, count: 32))))
      let vault = VaultBackend(path: "\(path).vault", key: key)
      try fill(vault, count)
      try lookups(vault, count)
      try stores(vault, count, raw: RawCommit(path: "\(path).raw"))
      try rekey(vault, count, path)
    }
    try openings(paths[1], counts[1], and: paths[0], counts[0])
    secondSlot(directory)
    try sameSecret(directory)
    try HistoryBenchmark(directory: directory).run()
  }

  /// What it costs to write the state to the second commit slot as well.
  static func secondSlot(_ directory: String) {
    let both = RawCommit(path: "\(directory)/benchmark.raw")
    let one = RawCommit(path: "\(directory)/benchmark-one.raw", isCopied: false)
    let frame = [UInt8](repeating: 6, count: 300)
    let times = compare(rounds: 3001, { both.commit(frame) }, { one.commit(frame) })
    report(
      "raw I/O of a change with both commit slots / with one", times.one, over: times.other, budget: 1.25)
  }

  /// What it costs to store one secret again and again, compared with many secrets once each.
  static func sameSecret(_ directory: String) throws {
    let vaults = try ["one", "many"].map { suffix in
      let path = "\(directory)/benchmark-\(suffix).vault"
      unlink(path)
      try VaultBackend.create(
        at: path, credential: .key(SecretBytes([UInt8](repeating: 7, count: 32))))
      return VaultBackend(path: path, key: key)
    }
    let value = SecretBytes([UInt8](repeating: 9, count: 40))
    var index = 0
    let times = try compare(rounds: 5001) {
      try vaults[0].store(value, for: name(0))
    } _: {
      index += 1
      try vaults[1].store(value, for: name(index))
    }
    report(
      "durable store of one secret / of another one each time", times.one, over: times.other, budget: 1.1)
  }

  static func name(_ index: Int) throws -> SecretIdentifier {
    try SecretIdentifier(service: "benchmark", account: "account \(index)")
  }

  static func fill(_ vault: VaultBackend, _ count: Int, reporting: Bool = true) throws {
    let value = SecretBytes([UInt8](repeating: 9, count: 40))
    let took = try time {
      try vault.withTransaction { transaction throws(SecretError) in
        for index in 0..<count {
          try transaction.store(
            value, for: SecretIdentifier(service: "benchmark", account: "account \(index)"), metadata: nil)
        }
      }
    }
    if !reporting { return }
    var raw = RawSodium(size: 64)
    let seals = time { for _ in 0..<count { raw.seal() } }
    report("\(count) secrets in one transaction / seal of as many values", took, over: seals, budget: 2)
    let listed = try time { _ = try vault.items(inService: nil) }
    print("| list \(count) | \(listed) s | | | | |")
  }

  static func lookups(_ vault: VaultBackend, _ count: Int) throws {
    var raw = RawSodium(size: 64)
    var index = 0
    let (one, other) = try compare(rounds: 101) {
      for _ in 0..<100 {
        index = (index + 7919) % count
        guard try vault.lookUp(name(index)) != nil else { fatalError("missing") }
      }
    } _: {
      for _ in 0..<100 { raw.open() }
    }
    report("warm lookup among \(count) / libsodium's open", one / 100, over: other / 100, budget: 3)
  }

  static func stores(_ vault: VaultBackend, _ count: Int, raw: RawCommit) throws {
    let value = SecretBytes([UInt8](repeating: 9, count: 40))
    let frame = [UInt8](repeating: 6, count: 300)
    var index = 0
    var ours: [Double] = []
    var theirs: [Double] = []
    for _ in 0..<3000 {
      index = (index + 7919) % max(count, 10)
      ours.append(try time { try vault.store(value, for: name(index)) })
      theirs.append(time { raw.commit(frame) })
    }
    report("durable store among \(count) / raw I/O, median", median(ours), over: median(theirs), budget: 1.25)
    report("the same, mean, rewrites included", mean(ours), over: mean(theirs), budget: nil)
    report("the same, 99th percentile", percentile99(ours), over: percentile99(theirs), budget: nil)
  }

  static func rekey(_ vault: VaultBackend, _ count: Int, _ path: String) throws {
    let took = try time { try vault.rekey() }
    var raw = RawSodium(size: 64)
    let least = time {
      copyDurably("\(path).vault", to: "\(path).raw")
      for _ in 0..<count { raw.seal() }
    }
    report(
      "rekey of \(count) / reading and writing the file with one seal a value", took, over: least, budget: 2)
  }

  /// What it costs to open a vault and to look up one secret.
  static func openings(_ path: String, _ count: Int, and otherPath: String, _ otherCount: Int) throws {
    func open(_ path: String) throws {
      let vault = VaultBackend(path: "\(path).vault", key: key)
      guard try vault.lookUp(name(5)) != nil else { fatalError("missing") }
    }
    let times = try compare(rounds: 301, { try open(path) }, { try open(otherPath) })
    report(
      "open and look up among \(count) / among \(otherCount)", times.one, over: times.other, budget: 4)
  }
}
