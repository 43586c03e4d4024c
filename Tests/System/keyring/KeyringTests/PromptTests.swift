#if Keyring
import CofferCore
import CofferKeyring
import CofferTestSupport
import Foundation
import Testing

@Suite(.needsKeyring) struct PromptTests {
  private let identifier: SecretIdentifier

  init() throws { identifier = try SecretIdentifier(service: "svc", account: "alice") }

  @Test func aDismissedPromptIsAnErrorAndChangesNothing() async throws {
    let keyring = try await PrivateKeyring(scripted: "dismiss")
    try await expectEveryCall(of: keyring.backend { $0.mayPrompt = true }, toThrow: .promptDismissed)
    #expect(try !keyring.calls().contains { ["Delete", "SetSecret", "CreateItem"].contains($0) })
  }

  @Test func withoutPermissionNoPromptIsShown() async throws {
    let keyring = try await PrivateKeyring(scripted: "answer", "0")
    try await expectEveryCall(of: keyring.backend(), toThrow: .locked)
    #expect(try !keyring.calls().contains { $0 == "Prompt" || $0 == "Delete" })
  }

  @Test func aPromptThatUnlocksNothingLeavesTheSecretLocked() async throws {
    let keyring = try await PrivateKeyring(scripted: "useless")
    let backend = keyring.backend { $0.mayPrompt = true }
    try await expectEveryCall(of: backend, toThrow: .locked)
    let absent = try SecretIdentifier(service: "svc", account: "absent")
    #expect(thrown { () throws(SecretError) in try backend.store("new", absent) }?.code == .locked)
    #expect(try keyring.calls().contains("Prompt"))
    #expect(try !keyring.calls().contains { ["Delete", "SetSecret", "CreateItem"].contains($0) })
  }

  @Test func withoutPromptsAConfirmationThatNobodyGivesIsAwaitedForAShortTime() async throws {
    let keyring = try await PrivateKeyring(storingWith: "asks-before-deletion")
    let backend = keyring.backend()
    try backend.store("kept", identifier)
    let start = ContinuousClock.now
    let error = thrown { () throws(SecretError) in try backend.remove(identifier) }
    #expect(error?.code == .locked && error?.reason.contains("confirm") == true)
    #expect(ContinuousClock.now - start < .seconds(30))
    #expect(try backend.text(identifier) == "kept")
  }

  @Test func nothingFoundInALockedCollectionIsLocked() async throws {
    let keyring = try await PrivateKeyring(scripted: "unsearched")
    try await expectEveryCall(of: keyring.backend(), toThrow: .locked)
    #expect(try !keyring.calls().contains { ["Prompt", "Delete", "CreateItem"].contains($0) })
  }

  @Test func aReadThatFollowsAChangeShowsNoPrompt() async throws {
    let keyring = try await PrivateKeyring(scripted: "never")
    let backend = keyring.backend { $0.mayPrompt = true }.withoutPrompts
    try await expectEveryCall(of: backend, toThrow: .locked)
    #expect(try !keyring.calls().contains("Prompt"))
  }

  /// `COFFER_TEST_LATE_PROMPT` sets after how many seconds the prompt is answered.
  @Test func aPromptMayTakeLongerThanTheTimeouts() async throws {
    let seconds = ProcessInfo.processInfo.environment["COFFER_TEST_LATE_PROMPT"] ?? "12"
    let keyring = try await PrivateKeyring(scripted: "answer", seconds)
    let backend = keyring.backend {
      $0.mayPrompt = true
      $0.connectTimeout = .seconds(10)
      $0.callTimeout = .seconds(10)
      $0.timeout = .seconds(10)
    }
    #expect(try backend.lookUp(identifier)?.string() == "s3cret")
    try backend.store("new", identifier)
    #expect(try backend.text(identifier) == "new")
    #expect(try keyring.calls().filter { $0 == "Prompt" }.count == 1)
  }

  @Test func cancellingDismissesThePrompt() async throws {
    let keyring = try await PrivateKeyring(scripted: "never")
    let backend = keyring.backend {
      $0.mayPrompt = true
      $0.promptTimeout = .seconds(300)  // so that the test ends if the prompt does not
    }
    let code = Task { [identifier] in await errorCode(backend, identifier) }
    try await eventually("there was no prompt") { try keyring.calls().contains("Prompt") }
    backend.cancelPrompts()
    #expect(await code.value == .promptDismissed)
    #expect(try keyring.calls().contains("Dismiss"))
  }

  @Test func thePromptTimeoutDismissesThePrompt() async throws {
    let keyring = try await PrivateKeyring(scripted: "never")
    let backend = keyring.backend {
      $0.mayPrompt = true
      $0.promptTimeout = .milliseconds(300)
    }
    #expect(await errorCode(backend, identifier) == .timedOut)
    #expect(try keyring.calls().contains("Dismiss"))
  }

  @Test func aServiceThatStopsDuringAPromptIsUnavailable() async throws {
    let keyring = try await PrivateKeyring(scripted: "never")
    let backend = keyring.backend {
      $0.mayPrompt = true
      $0.promptTimeout = .seconds(300)  // so that the test ends if the prompt does not
    }
    let code = Task { [identifier] in await errorCode(backend, identifier) }
    try await eventually("there was no prompt") { try keyring.calls().contains("Prompt") }
    keyring.killService()
    #expect(await code.value == .unavailable)
  }
}

private func errorCode(_ backend: KeyringBackend, _ identifier: SecretIdentifier) async -> SecretError.Code? {
  do throws(SecretError) {
    _ = try await backend.perform { backend throws(SecretError) in try backend.lookUp(identifier) }
    return nil
  } catch {
    return error.code
  }
}
#endif
