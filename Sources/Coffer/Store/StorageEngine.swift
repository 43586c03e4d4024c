internal import CofferCore
public import FoundationEssentials

/// A place for data under keys. A program writes against this protocol, and chooses where the data is kept.
///
/// Every method may be called from any task. A missing key is `nil` or left out, and never an error. A read that fails
/// throws.
public protocol StorageEngine: Sendable {
  /// Stores data under several keys in one step, and replaces what is there. Of two elements with one key, the later one
  /// is stored.
  func write(_ dataAndKeys: [(key: String, data: Data)]) async throws

  /// Returns the data of those of `keys` that exist, in their order.
  func read(keys: [String]) async throws -> [(key: String, data: Data)]

  /// Removes the data of several keys in one step. Keys that do not exist are ignored.
  func remove(keys: [String]) async throws

  /// Removes the data of all keys in one step.
  func removeAllData() async throws

  /// Whether there is data for a key.
  func keyExists(_ key: String) async throws -> Bool

  /// Returns all keys, sorted by their UTF-8 bytes.
  func allKeys() async throws -> [String]

  /// Returns the time at which the key was first written, or `nil` if it does not exist.
  func createdAt(key: String) async throws -> Date?

  /// Returns the time at which the key was last written, or `nil` if it does not exist.
  func updatedAt(key: String) async throws -> Date?
}

extension StorageEngine {
  /// Stores data under a key, and replaces what is there.
  public func write(_ data: Data, key: String) async throws { try await write([(key, data)]) }

  /// Returns the data of a key, or `nil` if it does not exist.
  public func read(key: String) async throws -> Data? { try await read(keys: [key]).first?.data }

  /// Returns the data of all keys, sorted by key.
  public func readAllDataAndKeys() async throws -> [(key: String, data: Data)] {
    try await read(keys: allKeys())
  }

  /// Returns the data of all keys, sorted by key.
  public func readAllData() async throws -> [Data] { try await readAllDataAndKeys().map(\.data) }

  /// Removes the data of a key. Succeeds if it does not exist.
  public func remove(key: String) async throws { try await remove(keys: [key]) }

  /// Returns the number of keys.
  public func keyCount() async throws -> Int { try await allKeys().count }
}

/// A storage engine that keeps each key as a secret of one service, encrypted by the backend.
///
/// Several writes or removals are one step if the backend has transactions. Keys are 1…1024 UTF-8 bytes without NUL.
public struct SecretStorageEngine: StorageEngine {
  private let scope: SecretScope
  private let source: BackendSource

  /// Creates an engine for the secrets of a scope, which should contain nothing else. Nothing is read.
  public init(_ scope: SecretScope) {
    self.scope = scope
    source = scope.backend.map { BackendSource(given: $0) } ?? DefaultBackend.source
  }

  private func identifier(_ key: String) throws(SecretError) -> SecretIdentifier {
    try SecretIdentifier(service: scope.service, account: key)
  }

  /// Runs `body` with the backend on a thread for blocking calls.
  private func call<R: Sendable>(
    _ body: @escaping @Sendable (any SecretBackend) throws(SecretError) -> R
  ) async throws(SecretError) -> R {
    let source = source
    return try await CallThreads.shared.call { () throws(SecretError) in try body(source.resolve()) }
  }

  /// Stores data under several keys in one step.
  public func write(_ dataAndKeys: [(key: String, data: Data)]) async throws {
    try await call { backend throws(SecretError) in
      try backend.withTransaction { transaction throws(SecretError) in
        for (key, data) in dataAndKeys {
          try transaction.store(SecretBytes(copying: data.span), for: identifier(key))
        }
      }
    }
  }

  /// Returns the data of those of `keys` that exist.
  public func read(keys: [String]) async throws -> [(key: String, data: Data)] {
    try await call { backend throws(SecretError) in
      var found: [(key: String, data: Data)] = []
      for key in keys {
        guard let secret = try backend.lookUp(identifier(key)) else { continue }
        found.append((key, secret.withBytes { $0.withUnsafeBytes { Data($0) } }))
      }
      return found
    }
  }

  /// Removes the data of several keys in one step.
  public func remove(keys: [String]) async throws {
    try await call { backend throws(SecretError) in
      try backend.withTransaction { transaction throws(SecretError) in
        for key in keys { try transaction.remove(identifier(key)) }
      }
    }
  }

  /// Removes the data of all keys in one step.
  public func removeAllData() async throws {
    try await call { backend throws(SecretError) in _ = try backend.removeAll(inService: scope.service) }
  }

  /// Whether there is data for a key.
  public func keyExists(_ key: String) async throws -> Bool { try await item(key) != nil }

  /// Returns all keys, sorted by their UTF-8 bytes.
  public func allKeys() async throws -> [String] {
    try await call { backend throws(SecretError) in
      try backend.items(inService: scope.service).map(\.identifier.account)
    }
  }

  /// Returns the time at which the key was first written.
  public func createdAt(key: String) async throws -> Date? { try await item(key)?.metadata.created }

  /// Returns the time at which the key was last written.
  public func updatedAt(key: String) async throws -> Date? { try await item(key)?.metadata.modified }

  private func item(_ key: String) async throws(SecretError) -> SecretItem? {
    try await call { backend throws(SecretError) in try backend.item(identifier(key)) }
  }
}
