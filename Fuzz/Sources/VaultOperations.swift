import CofferCore
import CofferTestSupport
import CofferSimulation
import CofferVault
import CofferVaultFormat
import Foundation

/// Changes a vault that the fuzzer made, and reads it again.
///
/// The rule is that success means readable: an operation that reports success leaves a file that a fresh process opens,
/// with what was written and with everything else that could be read before. An operation that throws changes nothing.
struct VaultOperations {
  enum Operation: UInt8, CaseIterable {
    case store, storeNew, remove, transaction, compact, rekey, addKey, removeKey, historyLimit, purge
    case storeWithoutHistory, restore
  }

  /// How often each operation succeeded, on vaults that verify and on others. Printed at the end of a run.
  nonisolated(unsafe) private static var counts: [String: Int] = [:]  // the fuzzer has one thread

  static func count(_ what: String) {
    if counts.isEmpty { atexit { VaultOperations.printCounts() } }
    counts[what, default: 0] += 1
  }

  private static func printCounts() {
    for (what, count) in counts.sorted(by: { $0.key < $1.key }) { print("count: \(what): \(count)") }
  }

  let disk: SimulatedDisk
  let environment: VaultEnvironment
  let credential: [UInt8]
  /// Whether a version may count beyond a limit of the history.
  let mayConflict: Bool
  private let otherCredential = [UInt8](repeating: 8, count: 32)

  private func open(pins: [String] = []) -> VaultBackend {
    var options = VaultOptions()
    options.pins = pins
    return VaultBackend(
      path: "vault",
      credentials: [credential, otherCredential].map {
        VaultCredentialSource("the fuzzer", .key(SecretBytes($0)))
      }, options: options,
      environment: environment)
  }

  // MARK: What can be read

  /// What a fresh process reads: the whole vault, or as much of it as is not refused.
  struct Reading: Equatable {
    struct Value: Equatable {
      let item: SecretItem
      let value: [UInt8]
    }
    var values: [SecretIdentifier: Value] = [:]
    var versions: [SecretIdentifier: [SecretVersion]] = [:]
    var earlierValues: [SecretIdentifier: [Int: [UInt8]]] = [:]
    /// The pin of the vault, if it verifies.
    var pin: String?
    var isWhole: Bool { pin != nil }
    var keySlots = 0
  }

  static let refusals: Set<SecretError.Code> = [.tampered, .unsupportedVersion]

  /// Runs `body`, which may only refuse the vault. Returns `nil` if it does.
  private func attempt<R>(_ body: () throws(SecretError) -> R) -> R? {
    do throws(SecretError) { return try body() } catch {
      require(Self.refusals.contains(error.code), "reading fails with \(error)")
      return nil
    }
  }

  private func bytes(_ secret: SecretBytes?) -> [UInt8]? {
    secret?.withBytes { $0.withUnsafeBytes { Array($0) } }
  }

  func read(_ names: Set<SecretIdentifier>) -> Reading {
    var reading = Reading()
    let vault = open()
    guard attempt({ () throws(SecretError) in try vault.unlock() }) != nil else { return reading }
    if let report = attempt({ () throws(SecretError) in try vault.verify() }) {
      (reading.pin, reading.keySlots) = (report.pin, report.keySlotCount)
      Self.count("verified")
    }
    // Every reader has one verdict on the same fault: what a reader of all records has accepted, no other refuses or
    // sees otherwise, and a vault that verifies is not refused at all.
    let listed = attempt { () throws(SecretError) in try vault.items(inService: nil) }
    let removed = attempt { () throws(SecretError) in try vault.removedItems(inService: nil) }
    require((listed == nil) == (removed == nil), "the lists of secrets and of removed ones are refused together")
    require(listed != nil || !reading.isWhole, "a vault that verifies is listed")
    var names = names.union((listed ?? []).map(\.identifier))
    names.formUnion((removed ?? []).map(\.identifier))
    for name in names {
      let found = attempt { () throws(SecretError) in try vault.item(name) }
      let history = attempt { () throws(SecretError) in try vault.versions(of: name) }
      if let listed {
        let isListed = listed.contains { $0.identifier == name }
        require(
          found.map { ($0 != nil) == isListed } ?? false, "a lookup finds what a list has, and refuses nothing of it")
        require(history != nil, "a list accepts a secret whose history is refused")
      }
      if let found, let history {
        require((found != nil) == (history.first?.kind == .current), "a lookup and a history find the same secret")
      }
      if let item = found ?? nil {
        let value = attempt { () throws(SecretError) in bytes(try vault.lookUp(name)) }
        require(value != nil || !reading.isWhole, "a value of a vault that verifies is read")
        if let value {
          guard let value else { fatalError("broken rule: a secret with metadata has a value") }
          require(item.identifier == name, "a secret has its own name")
          reading.values[name] = Reading.Value(item: item, value: value)
        }
      }
      let versions = history ?? []
      if versions.isEmpty { continue }
      reading.versions[name] = versions
      for version in versions where [.earlier, .conflict].contains(version.kind) {
        let value = attempt { () throws(SecretError) in
          bytes(try vault.secret(name, version: version.number)?.value)
        }
        require(value != nil || !reading.isWhole, "an earlier value of a vault that verifies is read")
        guard let value else { continue }
        guard let value else { fatalError("broken rule: a listed version has a value") }
        reading.earlierValues[name, default: [:]][version.number] = value
      }
    }
    return reading
  }

  // MARK: Changing

  private enum Effect {
    case nothing
    /// These secrets have this value, and no other has changed.
    case stored([SecretIdentifier], [UInt8])
    case removed([SecretIdentifier])
    case storedAndRemoved(SecretIdentifier, [UInt8], SecretIdentifier?)
    case purged(SecretIdentifier, [UInt8]?)
    case restored(SecretIdentifier, [UInt8])
    /// Earlier versions may be gone.
    case shortened
  }

  /// Runs the operations that `codes` name on what `names` and the vault itself name.
  func run(_ codes: some Sequence<UInt8>, names: Set<SecretIdentifier>) {
    // The names that a damaged vault does not list. Each look at one opens it twice, so that few must be enough.
    var names = Set(names.sorted().prefix(4))
    var before = read(names)
    for code in codes {
      guard let operation = Operation(rawValue: code % UInt8(Operation.allCases.count)) else { continue }
      names.formUnion(before.values.keys)
      names.formUnion(before.versions.keys)
      let file = disk.content(of: "vault")
      let sorted = names.sorted()
      let target = sorted.isEmpty ? Self.newName : sorted[Int(code / 16) % sorted.count]
      let state = before.isWhole ? "whole" : "damaged"
      do throws(SecretError) {
        let effect = try perform(operation, target, before)
        Self.count("\(operation) on a \(state) vault: success")
        names.insert(target)
        names.insert(Self.newName)
        let after = read(names)
        check(after, before, effect, operation)
        before = after
      } catch {
        Self.count("\(operation) on a \(state) vault: refused")
        require(disk.content(of: "vault") == file, "\(operation) fails with \(error) and changes the file")
        require(disk.names == ["vault"], "\(operation) fails and leaves a file")
        // A recipient of the fuzzer may be no key, or one that libsodium is too old for.
        let limits: Set<SecretError.Code> = [.tooLarge, .denied, .locked, .invalidKey, .unsupported]
        require(
          limits.contains(error.code) || (!before.isWhole && Self.refusals.contains(error.code)),
          "\(operation) fails with \(error)")
        return
      }
    }
  }

  private static let newName: SecretIdentifier = {
    do { return try SecretIdentifier(service: "fuzz", account: "new") } catch { fatalError("\(error)") }
  }()

  private func perform(
    _ operation: Operation, _ target: SecretIdentifier, _ before: Reading
  ) throws(SecretError) -> Effect {
    let vault = open()
    let value = [UInt8](repeating: 0x5A, count: 3)
    switch operation {
    case .store:
      try vault.store(SecretBytes(value), for: target)
      return .stored([target], value)
    case .storeNew:
      try vault.store(SecretBytes(value), for: Self.newName, metadata: SecretMetadata(label: "l"))
      return .stored([Self.newName], value)
    case .remove:
      return try vault.remove(target) ? .removed([target]) : .nothing
    case .transaction:
      let other = before.values.keys.sorted().first { $0 != target }
      try vault.withTransaction { transaction throws(SecretError) in
        try transaction.store(SecretBytes([1] as [UInt8]), for: target)
        _ = try transaction.remove(target)
        try transaction.store(SecretBytes(value), for: target)
        if let other { _ = try transaction.remove(other) }
      }
      return .storedAndRemoved(target, value, other)
    case .compact:
      try vault.compact()
      return .nothing
    case .rekey:
      try vault.rekey()
      return .nothing
    case .addKey:
      do throws(SecretError) {
        _ = try vault.addKeySlot(.key(SecretBytes(otherCredential)), label: "other")
      } catch { if error.code != .alreadyExists { throw error } }
      return .nothing
    case .removeKey:
      let opened = try vault.openKeySlots().ids
      guard opened.count > 1, let removed = opened.min() else { return .nothing }
      try vault.removeKeySlots(ids: [removed])
      return .nothing
    case .historyLimit:
      guard let limit = HistoryLimit(versions: 1, days: 0) else { return .nothing }
      try vault.setHistoryLimit(limit)
      return .shortened
    case .purge:
      return try vault.erase(target) ? .purged(target, nil) : .nothing
    case .storeWithoutHistory:
      let isRewritten = try vault.withTransaction { transaction throws(SecretError) in
        let isKnown = try transaction.erase(target)
        try transaction.store(SecretBytes(value), for: target)
        return isKnown
      }
      return isRewritten ? .purged(target, value) : .stored([target], value)
    case .restore:
      guard let number = before.earlierValues[target]?.keys.max(),
        try vault.restore(target, version: number) != nil,
        let restored = before.earlierValues[target]?[number]
      else { return .nothing }
      return .restored(target, restored)
    }
  }

  // MARK: Checking

  /// Requires that the vault is accepted under the pin of its state before an operation, unless its keys changed.
  private func checkPin(_ pin: String, _ operation: Operation) {
    do throws(SecretError) {
      require(try open(pins: [pin]).verify().showsPins, "\(operation): the file shows the state before")
    } catch {
      require(
        error.code == .unexpectedKey && [.rekey, .removeKey].contains(operation),
        "\(operation): a pin fails with \(error)")
    }
  }

  private func check(_ after: Reading, _ before: Reading, _ effect: Effect, _ operation: Operation) {
    let isRewritten: Bool =
      switch (operation, effect) {
      case (.compact, _), (.rekey, _), (.historyLimit, _), (_, .purged): true
      default: false
      }
    require(
      after.isWhole || !(before.isWhole || isRewritten), "after \(operation) the vault does not verify")
    if let pin = before.pin { checkPin(pin, operation) }
    var expected = before
    func expectStored(_ name: SecretIdentifier, _ value: [UInt8]) {
      require(after.values[name]?.value == value, "\(operation): what was stored is read")
      // An earlier version that is damaged keeps all versions of a secret from being listed.
      if let versions = after.versions[name] {
        require(versions.first?.kind == .current, "\(operation): what was stored is the current version")
      } else {
        require(
          !before.isWhole && before.versions[name] == nil, "\(operation): versions can be listed as before")
      }
      forget(name)
    }
    func forget(_ name: SecretIdentifier) {
      expected.values[name] = nil
      expected.versions[name] = nil
      expected.earlierValues[name] = nil
    }
    switch effect {
    case .nothing: break
    case .stored(let names, let value): for name in names { expectStored(name, value) }
    case .restored(let name, let value): expectStored(name, value)
    case .removed(let names):
      for name in names {
        require(after.values[name] == nil, "what was removed is not read")
        forget(name)
      }
    case .storedAndRemoved(let name, let value, let other):
      expectStored(name, value)
      if let other {
        require(after.values[other] == nil, "what was removed is not read")
        forget(other)
      }
    case .purged(let name, let value):
      if let value { expectStored(name, value) } else { forget(name) }
      require(after.values[name]?.value == value, "what was purged is not read")
      require((after.versions[name] ?? []).count == (value == nil ? 0 : 1), "a purge keeps no version")
    case .shortened:
      for (name, versions) in after.versions {
        require(
          mayConflict || versions.count { $0.kind == .earlier } <= 1, "a lower limit keeps no more versions")
        require(Set(before.versions[name] ?? []).isSuperset(of: versions), "a limit adds no version")
      }
      (expected.versions, expected.earlierValues) = ([:], [:])
    }
    for (name, value) in expected.values {
      require(after.values[name] == value, "\(operation): another secret is as before")
    }
    for (name, versions) in expected.versions {
      require(after.versions[name] == versions, "\(operation): the versions of another secret are as before")
    }
    for (name, values) in expected.earlierValues {
      for (number, value) in values {
        require(after.earlierValues[name]?[number] == value, "\(operation): an earlier value is as before")
      }
    }
  }
}
