import CofferCore
import CofferSimulation
import CofferTestSupport
import CofferVault
import FoundationEssentials

/// A source that always returns the same credential.
typealias FixedCredential = VaultCredentialSource

extension FixedCredential {
  enum Kind: Sendable {
    case key([UInt8])
    case passphrase(String)
    case identity(VaultIdentity)
  }

  init(kind: Kind) {
    let credential: VaultCredential =
      switch kind {
      case .key(let bytes): .key(SecretBytes(bytes))
      case .passphrase(let text): .passphrase(SecretBytes(text))
      case .identity(let identity): .identities([identity])
      }
    self.init("a fixed credential", credential)
  }

  var credential: VaultCredential {
    do {
      if let credential = try credential(for: VaultDescription(path: "", id: "")) { return credential }
    } catch {}
    fatalError("the source has no fixed credential")
  }
}

extension FixedCredential {
  static let key = FixedCredential(kind: .key([UInt8](repeating: 7, count: 32)))
  static let otherKey = FixedCredential(kind: .key([UInt8](repeating: 8, count: 32)))

  /// A source of the fixed key that counts how often it is asked.
  static func counted(_ asked: Count) -> VaultCredentialSource {
    VaultCredentialSource("a counted key") { _ throws(SecretError) in
      asked.add()
      return key.credential
    }
  }
}

extension VaultBackend {
  /// Creates a vault in a file of `environment`. Returns whether it was recorded.
  @discardableResult
  static func create(
    at path: String, credential: VaultCredential, label: String, history: HistoryLimit = .standard,
    options: VaultOptions, environment: VaultEnvironment
  ) throws(SecretError) -> Bool {
    try create(
      on: LocalMedium(path: path, environment: environment), credential: credential, label: label,
      history: history, options: options, environment: environment
    ).isRecorded
  }
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

extension SimulatedDisk {
  /// A disk with a vault, which belongs to root.
  static func withVault() throws -> SimulatedDisk {
    let disk = SimulatedDisk()
    try VaultBackend.create(
      at: "vault", credential: FixedCredential.key.credential, label: "", options: .cheap,
      environment: VaultEnvironment(fileSystem: disk, user: 0))
    return disk
  }

  func openVault(options: VaultOptions = .cheap) -> VaultBackend {
    VaultBackend(
      path: "vault", credentials: [FixedCredential.key], options: options,
      environment: VaultEnvironment(fileSystem: self, user: 0))
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

  /// Options of a writer that waits this long for a lock.
  static func impatient(_ lockTimeout: Duration) -> VaultOptions {
    var options = cheap
    options.lockTimeout = lockTimeout
    return options
  }
}
