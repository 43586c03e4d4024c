@testable import CofferConfiguration
import CofferCore
import CofferTestSupport
import CofferVault
import Foundation
import Testing

/// The configuration file decides which vault and which key are used, so nobody else may write it.
@Suite struct ConfigurationExposureTests {
  let home: TemporaryDirectory

  init() throws { home = try TemporaryDirectory() }

  private var configuration: BackendConfiguration {
    BackendConfiguration(environment: home.environment(), providers: [VaultProvider()])
  }

  @Test(arguments: [0o600, 0o644]) func aFileThatNobodyElseCanWriteDecides(mode: Int) throws {
    try home.write("backend = \"vault\"\n", to: ".config/coffer/config.toml", mode: mode)
    #expect(try configuration.choice().selection.name == .vault)
  }

  @Test(arguments: [0o660, 0o606, 0o622]) func aFileThatOthersCanWriteIsDenied(mode: Int) throws {
    let file = try home.write("backend = \"vault\"\n", to: ".config/coffer/config.toml", mode: mode)
    for error in [
      thrown { () throws(SecretError) in _ = try configuration.choice() },
      thrown { () throws(SecretError) in try configuration.record(backend: .vault) },
    ] {
      #expect(error?.code == .denied)
      #expect(error?.reason == "The configuration file \(file) can be changed by other users.")
    }
    #expect(try home.text(of: ".config/coffer/config.toml") == "backend = \"vault\"\n")
  }

  @Test(.enabled(if: getuid() == 0, "only root can give a file to another user"))
  func aFileOfAnotherUserIsDenied() throws {
    let file = try home.write("backend = \"vault\"\n", to: ".config/coffer/config.toml")
    #expect(chown(file, 54_321, 54_321) == 0)
    #expect(thrown { () throws(SecretError) in _ = try configuration.choice() }?.code == .denied)
  }
}
