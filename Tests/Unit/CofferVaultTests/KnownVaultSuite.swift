import CofferCore
import CofferSimulation
import CofferTestSupport
import CofferVault
import FoundationEssentials
import Glibc
import Testing

/// A suite whose tests use a vault and a directory for records of known vaults.
protocol KnownVaultSuite {
  var vault: TestVault { get }
  var states: TemporaryDirectory { get }
}

extension KnownVaultSuite {
  var recording: VaultOptions {
    var options = VaultOptions.cheap
    options.knownVaultsDirectory = states.path
    return options
  }

  /// Opens the vault like a new process.
  func fresh(
    withRecords: Bool = true, firstUse policy: TrustPolicy? = nil,
    environment: VaultEnvironment = VaultEnvironment()
  ) -> VaultBackend {
    var options = withRecords ? recording : .cheap
    options.firstUsePolicy = policy
    return vault.open(options: options, environment: environment)
  }

  /// Opens the vault by another path, like a new process.
  func fresh(at path: String) -> VaultBackend {
    VaultBackend(path: path, credentials: [FixedCredential.key], options: recording)
  }

  func write(_ bytes: [UInt8], to path: String) throws {
    try Data(bytes).write(to: URL(filePath: path))
    #expect(chmod(path, 0o600) == 0)
  }

  /// Replaces the content of the vault's file.
  func restore(_ bytes: [UInt8]) throws { try write(bytes, to: vault.path) }

  /// Returns the code of the error of `body`, if there is one.
  func code(_ body: () throws -> Void) -> SecretError.Code? {
    do {
      try body()
      return nil
    } catch { return (error as? SecretError)?.code }
  }
}
