internal import Coffer
internal import Glibc
internal import Synchronization

/// A program with a value of an earlier version, whose changes are stored later.
enum DelayedValue {
  struct Counter: Codable, Equatable {
    var count: Int
  }

  /// The tests make the vault with this key.
  static let scope = SecretScope(
    service: "probe",
    backend: VaultBackend(
      path: CommandLine.arguments[2], key: SecretBytes([UInt8](repeating: 7, count: 32))))

  struct Now: VaultStorable {
    static let key = "counter"
    static let defaultValue = Counter(count: 0)
    static var storage: SecretScope { scope }
    static let history = History.kept

    static func configure(builder: DataMigrator<Counter>.Builder) {
      builder.register(from: Int.self, to: Counter.self) { Counter(count: $0) }
    }
  }

  struct Later: VaultStorable {
    static let key = "counter"
    static let defaultValue = Counter(count: 0)
    static var storage: SecretScope { scope }
    static let saveDelay = Duration.seconds(3600)
  }

  private static let hasSignal = Atomic(false)

  static func run(_ mode: String) throws {
    if mode == "migrate" {
      let counter = VaultStored(Now.self)
      for _ in 0..<25 { try counter.update { $0.count += 1 } }
      return
    }
    if mode.hasPrefix("handle") { handle() }
    try VaultStored(Later.self).set(Counter(count: 1))
    if mode == "daemon" {
      // The original process calls `_exit`, and the copy goes on.
      guard daemon(1, 1) == 0 else { _exit(70) }
      Probe.write("copy\n")
      exit(3)
    }
    if mode == "return" { return }
    if mode == "exit" { exit(3) }
    Probe.write("ready\n")
    while !hasSignal.load(ordering: .acquiring) { usleep(1000) }
    if mode == "handle and exit" { exit(3) }
    // A program that calls `_exit` must store its delayed changes first.
    try DelayedSaves.flush()
    _exit(4)
  }

  private static func handle() {
    signal(SIGTERM) { _ in DelayedValue.hasSignal.store(true, ordering: .releasing) }
  }
}
