import CofferTestSupport
import CofferCore
import CofferVault
import Foundation
import Testing

@testable import CofferConfiguration

/// Master keys in the kernel keyring of this user. Each test uses a vault id of its own.
@Suite struct KernelKeyringTests {
  private let directory: TemporaryDirectory
  private let key = VaultKey.generate().array()
  private var path: String { directory.file("vault") }

  init() throws {
    directory = try TemporaryDirectory()
    try VaultBackend.create(at: path, credential: .key(SecretBytes(key)))
  }

  private var given: VaultCredentialSource { VaultCredentialSource("key", .key(SecretBytes(key))) }

  private func opened() -> VaultBackend { VaultBackend(path: path, credentials: [given]) }
  private func kept() -> VaultBackend { VaultBackend(path: path, credentials: [KernelKeyring.source]) }

  @Test func aKeptMasterKeyOpensTheVaultUntilItIsForgotten() throws {
    let id = try VaultBackend(path: path, credentials: []).description().id
    let keyring = KernelKeyring()
    defer { _ = try? keyring.forget(vault: id) }
    #expect(throws: SecretError.self) { try kept().unlock() }
    try opened().withMasterKey { vaultID, master throws(SecretError) in
      #expect(vaultID == id)
      try keyring.keep(master, forVault: vaultID, for: .seconds(60))
    }
    try kept().unlock()
    #expect(try keyring.forget(vault: id))
    #expect(try !keyring.forget(vault: id))
    #expect(throws: SecretError.self) { try kept().unlock() }
  }

  @Test func anObsoleteMasterKeyIsSkipped() throws {
    let id = try VaultBackend(path: path, credentials: []).description().id
    let keyring = KernelKeyring()
    defer { _ = try? keyring.forget(vault: id) }
    let vault = opened()
    try vault.withMasterKey { vaultID, master throws(SecretError) in
      try keyring.keep(master, forVault: vaultID, for: .seconds(60))
    }
    try vault.rekey()
    do {
      try kept().unlock()
      Issue.record("an obsolete master key opened the vault")
    } catch {
      #expect(error.code == .locked)
    }
    // The chain continues with the next source.
    try VaultBackend(path: path, credentials: [KernelKeyring.source, given]).unlock()
  }
}
