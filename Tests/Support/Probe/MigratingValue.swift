import Coffer

/// A program that changes a value of an earlier version.
enum MigratingValue {
  struct Counter: Codable, Equatable {
    var count: Int
  }

  /// The tests make the vault with this key.
  static let scope = SecretScope(
    service: "probe",
    backend: VaultBackend(path: CommandLine.arguments[2], key: SecretBytes([UInt8](repeating: 7, count: 32))))

  struct Now: VaultStorable {
    static let key = "counter"
    static let defaultValue = Counter(count: 0)
    static var storage: SecretScope { scope }
    static let history = History.kept

    static func configure(builder: DataMigrator<Counter>.Builder) {
      builder.register(from: Int.self, to: Counter.self) { Counter(count: $0) }
    }
  }

  static func run() throws {
    let counter = VaultStored(Now.self)
    for _ in 0..<25 { try counter.update { $0.count += 1 } }
  }
}
