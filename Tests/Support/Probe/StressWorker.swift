internal import CofferConfiguration
internal import Coffer
internal import CofferCore
internal import CofferVault

/// Makes every kind of change to an open vault, one call after another, until it is killed.
///
/// The worker prints a line with the changes before each call and another line after it, so that a reader knows which
/// values the vault may hold. A value is `PREFIX.STEP.` repeated `COUNT` times, and is printed as `STEPxCOUNT`. A
/// missing value is printed as `-`.
struct StressWorker {
  private let vault: String
  private let backend: VaultBackend
  private let prefix: String
  private var random: SystemRandomNumberGenerator
  private var step: Int

  private static let keyCount = 6
  private static let slotLabel = "stress "

  init(vault: String, prefix: String, firstStep: Int) {
    self.vault = vault
    self.prefix = prefix
    step = firstStep
    random = SystemRandomNumberGenerator()
    var options = VaultOptions()
    options.lockTimeout = .seconds(300)
    backend = BackendConfiguration.current().vault(at: vault, options: options)
  }

  mutating func run() throws -> Never {
    try report("snapshot", Array(0..<Self.keyCount))
    while true {
      step += 1
      switch Int.random(in: 0..<100, using: &random) {
      case 0..<35: try change(1)
      case 35..<70: try change(Int.random(in: 2...4, using: &random))
      case 70..<76: try abandon()
      case 76..<88: try report("read", [Int.random(in: 0..<Self.keyCount, using: &random)])
      case 88..<94: try call("") { () throws(SecretError) in try backend.compact() }
      default: try changeSlots()
      }
    }
  }

  private func identifier(_ key: Int) throws(SecretError) -> SecretIdentifier {
    try SecretIdentifier(service: "secret", account: "\(prefix).\(key)")
  }

  /// Prints the changes, calls `body`, and prints whether it returned or was refused. `refusals` are the errors that
  /// changes by other workers may cause.
  private func call(
    _ changes: String, refusals: [SecretError.Code] = [], _ body: () throws(SecretError) -> Void
  ) throws {
    Probe.write("intent \(changes)\n")
    do throws(SecretError) {
      try body()
      Probe.write("done\n")
    } catch {
      guard refusals.contains(error.code) else { throw error }
      Probe.write("refused\n")
    }
  }

  private typealias Change = (key: Int, count: Int?)

  private mutating func changes(_ count: Int) -> [Change] {
    Array(0..<Self.keyCount).shuffled(using: &random).prefix(count).map { key in
      if Int.random(in: 0..<5, using: &random) == 0 { return (key, nil) }
      // A large value now and then makes the vault due for a rewrite.
      return (key, Int.random(in: 0..<20, using: &random) == 0 ? 10_000 : 2)
    }
  }

  private func value(_ count: Int) -> SecretBytes {
    SecretBytes(String(repeating: "\(prefix).\(step).", count: count))
  }

  /// Stores and removes keys. One key is changed without a transaction, several keys with one transaction.
  private mutating func change(_ count: Int) throws {
    let changes = changes(count)
    let text = changes.map { "\($0.key)=\($0.count.map { "\(step)x\($0)" } ?? "-")" }
    try call(text.joined(separator: " ")) { () throws(SecretError) in
      if changes.count == 1, let (key, count) = changes.first {
        if let count {
          try backend.store(value(count), for: identifier(key))
        } else {
          try backend.remove(identifier(key))
        }
        return
      }
      try backend.withTransaction { transaction throws(SecretError) in try apply(changes, transaction) }
    }
  }

  private func apply(_ changes: [Change], _ transaction: any SecretTransaction) throws(SecretError) {
    for (key, count) in changes {
      if let count {
        try transaction.store(value(count), for: identifier(key))
      } else {
        try transaction.remove(identifier(key))
      }
    }
  }

  /// Makes changes in a transaction that throws at its end, and therefore changes nothing.
  private mutating func abandon() throws {
    let changes = changes(3)
    try call("", refusals: [.unsupported]) { () throws(SecretError) in
      try backend.withTransaction { transaction throws(SecretError) in
        try apply(changes, transaction)
        throw SecretError(.unsupported, "The transaction is abandoned.")
      }
    }
  }

  /// Prints the values of the keys, read in one transaction.
  private func report(_ word: String, _ keys: [Int]) throws {
    var texts: [String] = []
    try backend.withTransaction { transaction throws(SecretError) in
      for key in keys { texts.append("\(key)=\(try text(transaction.lookUp(identifier(key))))") }
    }
    Probe.write("\(word) \(texts.joined(separator: " "))\n")
  }

  /// The printed form of a value, or `?` if it is not a value of this worker.
  private func text(_ value: SecretBytes?) throws(SecretError) -> String {
    guard let value else { return "-" }
    let text = try value.string()
    let parts = text.split(separator: ".", maxSplits: 2)
    guard parts.count > 1, parts[0] == prefix else { return "?" }
    let unit = "\(prefix).\(parts[1])."
    let count = text.utf8.count / unit.utf8.count
    return text == String(repeating: unit, count: count) ? "\(parts[1])x\(count)" : "?"
  }

  // MARK: Key slots

  /// Adds a key slot, or removes one that a worker added. A change by another worker at the same time may cause a
  /// refusal.
  private mutating func changeSlots() throws {
    let slots = try VaultBackend(path: vault, credentials: []).description().keySlots.filter {
      $0.label.hasPrefix(Self.slotLabel)
    }
    let label = "\(Self.slotLabel)\(prefix).\(step)"
    let removed = slots.count < 4 ? nil : slots.randomElement(using: &random)
    try call("", refusals: [.conflict, .locked, .configuration]) { () throws(SecretError) in
      if let removed {
        let others = slots.map { VaultCredentialSource($0.label, labelledKey($0.label)) }
        try backend.removeKeySlots(ids: [removed.id], opened: backend.openKeySlots(with: others))
      } else {
        try backend.addKeySlot(labelledKey(label), label: label)
      }
    }
  }

  /// A key that is derived from the label of its slot, so that any worker can open a slot whose maker was killed.
  private func labelledKey(_ label: String) -> VaultCredential {
    let bytes = Array(label.utf8)
    return .key(SecretBytes((0..<VaultKey.length).map { bytes[$0 % bytes.count] }))
  }
}
