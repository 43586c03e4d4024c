import Coffer
import Glibc

/// What a history costs: the same changes to a vault that keeps 10 earlier versions and to one that keeps none.
struct HistoryBenchmark {
  private static let count = 1000
  private let paths: [String]
  private let vaults: [VaultBackend]

  init(directory: String) throws {
    paths = ["history", "none"].map { "\(directory)/benchmark-\($0).vault" }
    for (path, limit) in zip(paths, [HistoryLimit.standard, .none]) {
      unlink(path)
      try VaultBackend.create(
        at: path, credential: .key(SecretBytes([UInt8](repeating: 7, count: 32))), history: limit)
    }
    vaults = paths.map { VaultBackend(path: $0, key: CofferBenchmarks.key) }
  }

  func run() throws {
    for vault in vaults { try CofferBenchmarks.fill(vault, Self.count, reporting: false) }
    let value = SecretBytes([UInt8](repeating: 9, count: 40))
    var stores = [0.0, 0.0]
    for index in 0..<(Self.count * 12) {
      let name = try CofferBenchmarks.name(index % Self.count)
      for (position, vault) in vaults.enumerated() {
        stores[position] += try time { try vault.store(value, for: name) }
      }
    }
    let changes = Double(Self.count * 12)
    report(
      "durable store with 10 versions / with none", stores[0] / changes, over: stores[1] / changes,
      budget: 1.25)

    var index = 0
    func lookUp(_ vault: VaultBackend) throws {
      for _ in 0..<100 {
        index = (index + 7919) % Self.count
        guard try vault.lookUp(CofferBenchmarks.name(index)) != nil else { fatalError("missing") }
      }
    }
    let warm = try compare(rounds: 101, { try lookUp(vaults[0]) }, { try lookUp(vaults[1]) })
    report("warm lookup with 10 versions / with none", warm.one / 100, over: warm.other / 100, budget: 1.1)
    func open(_ path: String) throws {
      let vault = VaultBackend(path: path, key: CofferBenchmarks.key)
      guard try vault.lookUp(CofferBenchmarks.name(5)) != nil else { fatalError("missing") }
    }
    let cold = try compare(rounds: 101, { try open(paths[0]) }, { try open(paths[1]) })
    report("open and look up with 10 versions / with none", cold.one, over: cold.other, budget: 2)
    for path in paths {
      var status = stat()
      stat(path, &status)
      print("| size of \(path) | \(status.st_size) bytes | | | | |")
      fflush(nil)
      try spawnReader(of: path)
    }
  }

  /// Runs ``read(_:)`` in another process, whose memory has nothing of this one.
  private func spawnReader(of path: String) throws {
    var process = pid_t()
    let arguments = [CommandLine.arguments[0], "--read", path]
    var pointers: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
    defer { for pointer in pointers { free(pointer) } }
    guard posix_spawn(&process, "/proc/self/exe", nil, nil, &pointers, environ) == 0 else {
      fatalError("the process cannot be started")
    }
    var status: Int32 = 0
    guard waitpid(process, &status, 0) == process, status == 0 else { fatalError("the process failed") }
  }

  /// Lists the vault, looks up every secret, and prints the peak memory of the process.
  static func read(_ path: String) throws {
    let vault = VaultBackend(path: path, key: CofferBenchmarks.key)
    for item in try vault.items(inService: nil) {
      guard try vault.lookUp(item.identifier) != nil else { fatalError("missing") }
    }
    guard let status = fopen("/proc/self/status", "r") else { fatalError("there is no /proc/self/status") }
    defer { fclose(status) }
    var line = [CChar](repeating: 0, count: 256)
    while fgets(&line, 256, status) != nil {
      let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
      guard text.hasPrefix("VmHWM:") else { continue }
      let peak = text.split { $0 == " " || $0 == "\t" }[1]
      print("| peak memory of a process that reads all of it | \(peak) KiB | | | | |")
    }
  }
}
