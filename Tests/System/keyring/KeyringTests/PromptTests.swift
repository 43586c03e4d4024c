#if Keyring
import CofferCore
import CofferKeyring
import CofferTestSupport
import Foundation
import Testing

extension KeyringTests {
  @Suite(.serialized) struct Prompts {
    let identifier: SecretIdentifier
    let keyring: PrivateKeyring
    init() throws {
      identifier = try SecretIdentifier(service: "svc", account: "alice")
      keyring = try PrivateKeyring(.encrypted, startsDaemon: false)
    }

    @Test func aPromptThatIsDismissedIsSaidSo() throws {
      let service = try ScriptedService(keyring, ["dismiss"])
      defer { service.kill() }
      let backend = keyring.backend { $0.mayPrompt = true }
      #expect(backend.code { _ = try $0.lookUp(identifier) } == .promptDismissed)
      #expect(backend.code { _ = try $0.remove(identifier) } == .promptDismissed)
      #expect(backend.code { try $0.store("x", identifier) } == .promptDismissed)
      #expect(backend.code { _ = try $0.items(inService: nil) } == .promptDismissed)
      #expect(try !service.calls().contains { $0 == "Delete" || $0 == "SetSecret" })
    }

    @Test func whereNobodyMayBeAskedNobodyIs() throws {
      let service = try ScriptedService(keyring, ["answer", "0"])
      defer { service.kill() }
      let backend = keyring.backend()
      #expect(backend.code { _ = try $0.lookUp(identifier) } == .locked)
      #expect(backend.code { _ = try $0.remove(identifier) } == .locked)
      #expect(try !service.calls().contains("Prompt"))
      #expect(try !service.calls().contains("Delete"))
    }

    /// `COFFER_TEST_LATE_PROMPT` sets how late, in seconds.
    @Test func aPromptThatIsAnsweredLateStillWorks() throws {
      let seconds = ProcessInfo.processInfo.environment["COFFER_TEST_LATE_PROMPT"] ?? "3"
      let service = try ScriptedService(keyring, ["answer", seconds])
      defer { service.kill() }
      let backend = keyring.backend {
        $0.mayPrompt = true
        $0.connectTimeout = .seconds(2)
        $0.callTimeout = .seconds(1)
      }
      #expect(try backend.text(identifier) == "s3cret")
      try backend.store("new", identifier)
      #expect(try backend.text(identifier) == "new")
      #expect(try service.calls().filter { $0 == "Prompt" }.count == 1)
    }

    @Test func aPromptCanBeTakenAway() throws {
      let service = try ScriptedService(keyring, ["never"])
      defer { service.kill() }
      let backend = keyring.backend { $0.mayPrompt = true }
      let code = Outcome()
      let thread = Thread { [identifier] in code.set(backend.code { _ = try $0.lookUp(identifier) }) }
      thread.start()
      try waitUntil("there was no prompt") { try service.calls().contains("Prompt") }
      backend.cancelPrompts()
      try waitUntil("the call did not end") { code.value != nil }
      #expect(code.value == .promptDismissed)
      #expect(try service.calls().contains("Dismiss"))
    }

    @Test func aPromptHasADeadlineWhereOneIsSet() throws {
      let service = try ScriptedService(keyring, ["never"])
      defer { service.kill() }
      let backend = keyring.backend {
        $0.mayPrompt = true
        $0.promptTimeout = .seconds(0.3)
      }
      #expect(backend.code { _ = try $0.lookUp(identifier) } == .timedOut)
      #expect(try service.calls().contains("Dismiss"))
    }

    @Test func aServiceThatDiesWhileItAsksIsUnavailable() throws {
      let service = try ScriptedService(keyring, ["never"])
      let backend = keyring.backend { $0.mayPrompt = true }
      let code = Outcome()
      let thread = Thread { [identifier] in code.set(backend.code { _ = try $0.lookUp(identifier) }) }
      thread.start()
      try waitUntil("there was no prompt") { try service.calls().contains("Prompt") }
      service.kill()
      try waitUntil("the call did not end") { code.value != nil }
      #expect(code.value == .unavailable)
    }

    @Test func theEnvironmentSaysWhetherSomebodyMayBeAsked() {
      func mayPrompt(_ environment: [String: String]) -> Bool {
        KeyringOptions(environment: environment).mayPrompt
      }
      #expect(mayPrompt(["DISPLAY": ":0"]))
      #expect(mayPrompt(["WAYLAND_DISPLAY": "wayland-0"]))
      #expect(!mayPrompt([:]))
      #expect(!mayPrompt(["DISPLAY": "", "TERM": "xterm"]))
      #expect(!mayPrompt(["DISPLAY": ":0", "COFFER_NO_PROMPT": "1"]))
    }

    private final class Outcome: @unchecked Sendable {  // behind the lock
      private let lock = NSLock()
      private var code: SecretError.Code?
      func set(_ code: SecretError.Code?) { lock.withLock { self.code = code } }
      var value: SecretError.Code? { lock.withLock { code } }
    }
  }
}
#endif
