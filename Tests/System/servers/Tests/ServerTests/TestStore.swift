import Coffer
import Foundation

/// The stores that the provider is tested on.
enum TestStore: String, CaseIterable, Sendable {
  case memory, vault

  /// A new empty store. A vault is in `directory`.
  func open(in directory: TestDirectory) throws -> any SecretBackend {
    switch self {
    case .memory: MemoryBackend()
    case .vault: try directory.vault()
    }
  }
}

/// A private directory that is removed when the object is released.
final class TestDirectory: Sendable {
  let path: String
  private static let key = [UInt8](repeating: 7, count: 32)

  init() throws {
    path = NSTemporaryDirectory() + "coffer-servers-" + UUID().uuidString
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
  }

  deinit {
    do {
      try FileManager.default.removeItem(atPath: path)
    } catch {
      print("\(path) was not removed: \(error)")
    }
  }

  /// A vault in the directory. Every call returns another object for it, as another process would have.
  func vault() throws -> VaultBackend {
    let path = path + "/test.vault"
    if !FileManager.default.fileExists(atPath: path) {
      try VaultBackend.create(at: path, credential: .key(SecretBytes(Self.key)))
    }
    return VaultBackend(path: path, key: SecretBytes(Self.key))
  }
}

extension SecretBackend {
  func set(_ account: String, _ text: String, service: String = "server") throws {
    try store(SecretBytes(text), for: SecretIdentifier(service: service, account: account))
  }

  func drop(_ account: String) throws {
    try remove(SecretIdentifier(service: "server", account: account))
  }

  func text(_ account: String) throws -> String? {
    try lookUp(SecretIdentifier(service: "server", account: account))?.string()
  }

  /// The secrets of the service `server`.
  var scope: SecretScope { SecretScope(service: "server", backend: self) }
}
