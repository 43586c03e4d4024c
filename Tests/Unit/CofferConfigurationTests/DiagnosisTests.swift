import CofferCore
import CofferTestSupport
import CofferVault
import Foundation
import Testing

@testable import CofferConfiguration

@Suite(.timeLimit(.minutes(30))) struct DiagnosisTests {
  let home: TemporaryDirectory
  let vault: String

  init() throws {
    home = try TemporaryDirectory()
    vault = home.path + "/vault/x.vault"
    try home.makeDirectory("vault")
  }

  private func findings(
    _ more: [String: String], keyring: Bool = true, backend: BackendSelection? = nil, canAsk: Bool = false
  ) -> [BackendDiagnosis.Finding] {
    let configuration = CofferConfiguration(
      environment: home.environment(more), providers: [VaultProvider(), StubKeyring(isAvailable: keyring)])
    return BackendDiagnosis(configuration, backend: backend, service: "tests", canAsk: canAsk)
      .findings
  }

  /// Creates the vault, and returns the environment that opens it.
  private func createVault() throws -> [String: String] {
    let key = VaultKey.generate()
    let text = try VaultKey.text(of: key).string()
    try VaultBackend.create(at: vault, credential: .key(key))
    return ["COFFER_VAULT": vault, "COFFER_KEY_FILE": try home.write(text, to: "key")]
  }

  @Test func aWorkingVaultHasNoBadFinding() throws {
    let findings = findings(try createVault())
    #expect(!findings.contains { $0.grade == .bad })
    #expect(findings.first?.text == "vault. COFFER_VAULT names a vault.")
    #expect(
      findings.contains {
        $0.subject == "key" && $0.text == "the vault was opened with the credential from COFFER_KEY_FILE"
      })
    #expect(findings.contains { $0.subject == "key" && $0.grade == .note && $0.code == .singleKeySlot })
    #expect(findings.contains { $0.subject == "key file" && $0.grade == .ok })
  }

  @Test func anErrorIsABadFindingWithItsCodeAndAdvice() throws {
    let missing = findings(["COFFER_VAULT": vault])
    let finding = try #require(missing.first { $0.grade == .bad })
    #expect(finding.subject == "vault" && finding.code == .vaultNotFound && finding.advice != nil)
    #expect(missing.contains { $0.subject == "directory" }, "the surroundings were not examined")
  }

  @Test func noBackendIsABadFinding() throws {
    let findings = findings([:], keyring: false)
    #expect(findings.map(\.grade) == [.bad])
    #expect(findings.first?.code == .noBackend && findings.first?.subject == "backend")
  }

  @Test func anExposedKeyFileIsBad() throws {
    let environment = try createVault()
    #expect(chmod(home.path + "/key", 0o644) == 0)
    let bad = findings(environment).filter { $0.grade == .bad }
    #expect(bad.map(\.subject) == ["key", "key file"])
    #expect(bad.allSatisfy { $0.code == .denied })
  }

  @Test func aDirectoryThatOthersCanWriteToIsBad() throws {
    let environment = try createVault()
    #expect(chmod(home.path + "/vault", 0o777) == 0)
    #expect(findings(environment).contains { $0.subject == "directory" && $0.grade == .bad })
  }

  @Test func aPassphraseIsNoFailureIfItCanBeAskedFor() throws {
    var options = VaultOptions()
    (options.passphraseMemory, options.passphrasePasses) = (64 << 10, 1)
    try VaultBackend.create(
      at: vault, credential: .passphrase(SecretBytes(copying: "phrase")), options: options)
    let isBad = [true, false].map { canAsk in
      findings(["COFFER_VAULT": vault], canAsk: canAsk).contains { $0.grade == .bad && $0.code == .locked }
    }
    #expect(isBad == [false, true])
  }

  @Test func aSelectedBackendIsExaminedAndVariablesOfOthersHaveNoEffect() throws {
    let findings = findings(try createVault(), backend: BackendSelection(.keyring))
    #expect(findings.map(\.subject) == ["backend", "keyring", "surroundings", "environment", "environment"])
    #expect(findings.first?.text == "keyring, selected by an option")
    #expect(findings.last?.text == "COFFER_KEY_FILE has no effect with the backend keyring")
  }

  @Test func thePlaceOfTheChoiceIsExamined() throws {
    var variables = try createVault()
    variables["COFFER_VAULT"] = home.path + "/missing"
    variables["COFFER_BACKEND"] = "vault:\(vault)"
    let findings = findings(variables)
    #expect(!findings.contains { $0.grade == .bad })
    #expect(findings.last?.text == "COFFER_VAULT has no effect with the backend vault:\(vault)")
  }

  @Test func aBackendIsParsedWithItsPlace() throws {
    let providers = BackendRegistry.providers
    #expect(providers.forms == ["vault", "vault:PATH", "keyring", "keyring:COLLECTION"])
    #expect(providers.selection("vault") == BackendSelection(.vault))
    #expect(providers.selection("vault:/a:b") == BackendSelection(.vault, at: "/a:b"))
    #expect(providers.selection("keyring:login") == BackendSelection(.keyring, at: "login"))
    for text in ["vault:", "keyring:", "file", "", ":", "Vault"] {
      #expect(providers.selection(text) == nil, "\(text)")
    }
    let configuration = CofferConfiguration(environment: home.environment())
    let error = thrown { () throws(SecretError) in
      _ = try configuration.backend(BackendName(rawValue: "file"), at: "/x")
    }
    #expect(error?.code == .configuration)
  }
}
