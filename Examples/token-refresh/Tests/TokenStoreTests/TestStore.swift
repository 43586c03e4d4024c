import Coffer
import Foundation

@testable import TokenRefresh

/// A new store of one kind. Nothing of the person who runs the tests is read or written.
final class TestStore: Sendable {
  enum Kind: CaseIterable {
    case memory, vault, keyring
  }

  let directory: TemporaryDirectory
  let backend: any SecretBackend
  /// The environment of a program that uses this store. For a store in memory there is no such program.
  let environment: [String: String]
  /// The session of a keyring.
  let session: KeyringSession?

  init(_ kind: Kind) async throws {
    directory = try TemporaryDirectory()
    switch kind {
    case .memory:
      (backend, environment, session) = (MemoryBackend(), [:], nil)
    case .vault:
      let key = VaultKey.generate()
      let own = ProcessInfo.processInfo.environment
      // The tests of the engines set the variable, and those with which the engine is reached.
      let place = own["COFFER_ENGINE_URL"] ?? directory.file("test.vault")
      let vault = try VaultBackend.create(at: place, credential: .key(key))
      backend = vault
      environment = own.filter { $0.key.hasPrefix("AWS_") || $0.key.hasPrefix("PG") }.merging([
        "HOME": directory.path, "COFFER_BACKEND": "vault:\(place)",
        "COFFER_KEY": try VaultKey.text(of: key).string(), "COFFER_PIN": try vault.pin(),
      ]) { $1 }
      session = nil
    case .keyring:
      let session = try await KeyringSession(in: directory)
      backend = session.backend
      environment = session.environment.merging(["COFFER_BACKEND": "keyring"]) { $1 }
      self.session = session
    }
  }

  func file(_ name: String) -> String { directory.file(name) }
}

/// A directory that is removed when the object is released.
final class TemporaryDirectory: Sendable {
  let path: String

  init() throws {
    var template = Array((FileManager.default.temporaryDirectory.path + "/token-store-XXXXXX").utf8CString)
    guard mkdtemp(&template) != nil else { throw Failure("mkdtemp failed: error \(errno).") }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func file(_ name: String) -> String { "\(path)/\(name)" }
}

/// Waits until `condition` is true. Throws after a minute, so that a test does not wait for ever.
func eventually(_ what: String, _ condition: () async throws -> Bool) async throws {
  for _ in 0..<6000 {
    if try await condition() { return }
    try await Task.sleep(for: .milliseconds(10))
  }
  throw Failure("Not after a minute: \(what).")
}
