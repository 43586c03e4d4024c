import CofferCore
import CofferTestSupport
import CofferVault
import FoundationEssentials

/// A source that always returns the same credential.
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

/// A vault in its own temporary directory, opened with a fixed key.
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
  /// Options with a negligible cost for passphrases.
  static var cheap: VaultOptions {
    var options = VaultOptions()
    options.passphraseMemory = 64 << 10
    options.passphrasePasses = 1
    return options
  }
}
