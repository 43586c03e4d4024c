import CofferCore
import CofferVault
import FoundationEssentials
import Glibc

/// A directory of a test's own, removed when the test lets it go.
final class TemporaryDirectory: Sendable {
  let path: String

  init() throws {
    var template = Array("/tmp/coffer-test.XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw POSIXFailure(call: "mkdtemp", number: errno) }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit { _ = try? FileManager.default.removeItem(atPath: path) }

  func file(_ name: String) -> String { "\(path)/\(name)" }
}

struct POSIXFailure: Error {
  let call: String
  let number: Int32
}

/// A source that gives what it was made with.
struct FixedCredential: VaultCredentialSource {
  enum Kind: Sendable {
    case key([UInt8])
    case passphrase(String)
  }
  let kind: Kind
  var name: String { "a fixed credential" }

  func credential(for vault: VaultDescription) throws(SecretError) -> VaultCredential? {
    credential
  }

  var credential: VaultCredential {
    switch kind {
    case .key(let bytes): .key(SecretBytes(copying: bytes))
    case .passphrase(let text): .passphrase(SecretBytes(copying: text))
    }
  }
}

extension FixedCredential {
  static let key = FixedCredential(kind: .key([UInt8](repeating: 7, count: 32)))
  static let otherKey = FixedCredential(kind: .key([UInt8](repeating: 8, count: 32)))
}

/// A vault in a directory of its own, opened with a fixed key.
struct TestVault {
  let directory: TemporaryDirectory
  let path: String

  init(_ credential: FixedCredential = .key, environment: VaultEnvironment = VaultEnvironment()) throws {
    directory = try TemporaryDirectory()
    path = directory.file("test.vault")
    try VaultBackend.create(
      at: path,
      credential: credential.credential,
      label: "",
      options: .cheap,
      environment: environment
    )
  }

  func open(
    _ credential: FixedCredential? = .key,
    options: VaultOptions = .cheap,
    environment: VaultEnvironment = VaultEnvironment()
  ) -> VaultBackend {
    VaultBackend(
      path: path,
      credentials: credential.map { [$0] } ?? [],
      options: options,
      environment: environment
    )
  }

  var bytes: [UInt8] {
    get throws { try Array(Data(contentsOf: URL(filePath: path))) }
  }
}

extension VaultOptions {
  /// Passphrases that cost nothing to stretch, and waits that end soon.
  static var cheap: VaultOptions {
    var options = VaultOptions()
    options.passphraseMemory = 64 << 10
    options.passphrasePasses = 1
    return options
  }
}

func identifier(_ account: String, service: String = "test") throws -> SecretIdentifier {
  try SecretIdentifier(service: service, account: account)
}

extension SecretBytes {
  borrowing func array() -> [UInt8] { withBytes { $0.withUnsafeBytes { Array($0) } } }
}

extension SecretBackend {
  func get(_ account: String) throws -> [UInt8]? {
    try lookUp(identifier(account))?.array()
  }
  func set(_ account: String, _ value: [UInt8]) throws {
    try store(SecretBytes(copying: value), for: identifier(account))
  }
}
