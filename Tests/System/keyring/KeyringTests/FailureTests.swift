#if Keyring
import CofferConfiguration
import CofferCore
import CofferKeyring
import CofferTestSupport
import Foundation
import Synchronization
import Testing

/// Errors and recovery when the keyring is locked, when a daemon does not run, and when it does not answer.
@Suite(.needsKeyring) struct FailureTests {
  let identifier: SecretIdentifier
  init() throws { identifier = try SecretIdentifier(service: "svc", account: "alice") }

  @Test func aLockedKeyringIsReportedAndLosesNothing() async throws {
    let keyring = try await PrivateKeyring(.encrypted)
    let backend = keyring.backend()
    try backend.store("kept", identifier)
    try await keyring.restartDaemon(unlocking: false)
    try await expectEveryCall(of: backend, toThrow: .locked)
    // The service searches locked collections too, so an absent secret needs no password.
    #expect(try backend.text(SecretIdentifier(service: "svc", account: "absent")) == nil)
    try await keyring.restartDaemon()
    #expect(try backend.text(identifier) == "kept")
    #expect(try backend.items(inService: nil).count == 1)
  }

  @Test func aBusWithoutAServiceIsUnavailable() async throws {
    let keyring = try await PrivateKeyring(startsDaemon: false)
    try await expectEveryCall(of: keyring.backend(), toThrow: .unavailable)
    let status = keyring.status
    #expect(status.isBusReachable && !status.isServiceRunning && !status.isServiceActivatable)
    #expect(status.problem == nil)
    #expect(try !keyring.backend().isAvailable())
  }

  @Test func aServiceThatNeverAnswersTimesOut() async throws {
    let keyring = try await PrivateKeyring(scripted: "silent")
    let backend = keyring.backend {
      $0.connectTimeout = .milliseconds(200)
      $0.callTimeout = .milliseconds(200)
    }
    try await expectEveryCall(of: backend, toThrow: .timedOut)
  }

  @Test(arguments: [[], ["silent"]]) func aBusThatStopsAnsweringTimesOut(_ mode: [String]) async throws {
    let directory = try TemporaryDirectory()
    let script = try #require(Bundle.module.path(forResource: "Fixtures/stalling_bus", ofType: "py"))
    let bus = try ChildProcess(
      [try InstalledPrograms.pythonWithDBus.get(), script, directory.file("bus")] + mode, package: "python3",
      environment: ["PATH": InstalledPrograms.searchPath], endsWithTests: true)
    defer { bus.kill() }
    try await eventually("the bus did not start") {
      FileManager.default.fileExists(atPath: directory.file("bus"))
    }
    let environment = ["DBUS_SESSION_BUS_ADDRESS": "unix:path=\(directory.file("bus"))"]
    var options = KeyringOptions(environment: environment)
    options.connectTimeout = .milliseconds(500)
    let backend = KeyringBackend(options: options, environment: environment)
    let start = ContinuousClock.now
    let error = thrown { () throws(SecretError) in _ = try backend.isAvailable() }
    #expect(error?.code == .timedOut && ContinuousClock.now - start < .seconds(4))
    let other = mode.isEmpty ? "keyring" : "session bus"
    #expect(error?.reason == "The \(other) did not answer within 0.5 seconds.")
    try await expectEveryCall(of: backend, toThrow: .timedOut)
  }

  @Test func anItemThatVanishesWhileItIsReadIsAbsent() async throws {
    let keyring = try await PrivateKeyring(storingWith: "vanishes-when-read")
    try keyring.backend().store("value", identifier)
    #expect(try keyring.backend().text(identifier) == nil)
  }

  @Test func manySlowAnswersTimeOutTogether() async throws {
    let keyring = try await PrivateKeyring(scripted: "slow", "60", "0.1")
    let backend = keyring.backend { $0.timeout = .seconds(1) }
    let error = thrown { () throws(SecretError) in _ = try backend.items(inService: "svc") }
    #expect(error?.code == .timedOut)
    let reason = error?.reason ?? ""
    #expect(reason.hasPrefix("The keyring gave ") && reason.contains(" answers within "), "\(reason)")
  }

  @Test func theOperationsOfACommandHaveOneDeadline() async throws {
    let keyring = try await PrivateKeyring(scripted: "slow", "1", "0.5")
    let name = try SecretIdentifier(service: "svc", account: "name 1")
    for (isShared, count) in [(false, 4), (true, 10)] {
      let backend = keyring.backend { $0.timeout = .seconds(3) }
      if isShared { backend.shareDeadline() }
      let error = thrown { () throws(SecretError) in for _ in 0..<count { _ = try backend.item(name) } }
      #expect(error?.code == (isShared ? .timedOut : nil))
    }
  }

  /// The service says that the item is not locked, and refuses its value.
  @Test(arguments: [("secret-locked", SecretError.Code.locked), ("secret-no-session", .io)])
  func theReasonOfARefusedValueIsTold(_ answer: String, _ code: SecretError.Code) async throws {
    let keyring = try await PrivateKeyring(scripted: "hostile", answer)
    let error = thrown { () throws(SecretError) in _ = try keyring.backend().lookUp(identifier) }
    #expect(error?.code == code)
    #expect(error?.reason.contains(code == .io ? "NoSession" : "locked") == true)
  }

  @Test func aLargeKeyringHasMoreTime() async throws {
    let keyring = try await PrivateKeyring(scripted: "slow", "200", "0.01")
    let items = try keyring.backend { $0.timeout = .seconds(1) }.items(inService: "svc")
    #expect(items.count == 200)
  }

  @Test func anItemThatCannotBeReadEndsAListUnlessItIsToBeLeftOut() async throws {
    for (deviation, listed) in [("refuses-alice", 9), ("hides-alice", 10)] {
      let keyring = try await PrivateKeyring(storingWith: deviation)
      let names = try (1...9).map { try SecretIdentifier(service: "svc", account: "name \($0)") }
      for name in names + [identifier] { try keyring.backend().store("value", name) }
      let strict = keyring.backend()
      let error = thrown { () throws(SecretError) in
        _ = try strict.items(inService: "svc")
        _ = try strict.secrets(inService: "svc")
      }
      #expect(error?.code == .io)
      let backend = keyring.backend()
      let leftOut = Mutex<[String]>([])
      backend.leaveOutUnreadable { name, _ in leftOut.withLock { $0.append(name) } }
      for service in ["svc", nil] {
        #expect(try backend.items(inService: service).count == listed)
        #expect(try backend.withoutPrompts.items(inService: service).count == listed)
      }
      #expect(try backend.secrets(inService: "svc").map(\.identifier) == names.sorted())
      #expect(leftOut.withLock { $0.contains { $0.contains(deviation == "hides-alice" ? "alice" : "/") } })
      #expect(thrown { () throws(SecretError) in _ = try backend.lookUp(identifier) }?.code == .io)
      if deviation == "refuses-alice" {
        #expect(thrown { () throws(SecretError) in try backend.store("new", identifier) }?.code == .io)
      }
    }
  }

  @Test(arguments: ["deletes-nothing", "deletes-by-no-prompt", "stores-nothing"])
  func whatTheServiceDidNotDoIsAnError(_ deviation: String) async throws {
    let keyring = try await PrivateKeyring(storingWith: deviation)
    let backend = keyring.backend()
    if deviation == "stores-nothing" {
      let error = thrown { () throws(SecretError) in try backend.store("value", identifier) }
      #expect(error?.code == .io && error?.effect == .unknown)
      return
    }
    try backend.store("value", identifier)
    #expect(thrown { () throws(SecretError) in try backend.remove(identifier) }?.code == .io)
    let other = try SecretIdentifier(service: "svc", account: "other")
    #expect(
      thrown { () throws(SecretError) in
        try backend.move(identifier, to: other, replacing: false)
      }?
      .code == .io)
    #expect(try backend.text(identifier) == "value")
  }

  @Test func theSecondAttemptHasTheRestOfTheTime() async throws {
    let keyring = try await PrivateKeyring(scripted: "broken-sessions")
    // Each attempt takes a second.
    let error = thrown { () throws(SecretError) in
      _ = try keyring.backend { $0.timeout = .milliseconds(1500) }.lookUp(identifier)
    }
    #expect(error?.code == .timedOut && error?.effect == SecretError.Effect.none)
    let patient = thrown { () throws(SecretError) in
      _ = try keyring.backend { $0.timeout = .seconds(300) }.lookUp(identifier)
    }
    #expect(patient?.code == .io)
  }

  @Test func aSessionThatIsNeverOpenedTimesOutWithTheOperation() async throws {
    let keyring = try await PrivateKeyring(scripted: "no-session")
    let backend = keyring.backend {
      $0.connectTimeout = .seconds(300)
      $0.timeout = .milliseconds(500)
    }
    let start = ContinuousClock.now
    let error = thrown { () throws(SecretError) in _ = try backend.lookUp(identifier) }
    #expect(error?.code == .timedOut && ContinuousClock.now - start < .seconds(15))
  }

  @Test func aSessionThatCannotBeOpenedIsNotWaitedFor() async throws {
    let keyring = try await PrivateKeyring(scripted: "hostile", "session-string")
    let backend = keyring.backend {
      $0.connectTimeout = .seconds(300)
      $0.timeout = .seconds(600)
    }
    try await expectEnd {
      let error = thrown { () throws(SecretError) in _ = try backend.lookUp(identifier) }
      #expect(error?.code == .io)
    }
  }

  /// Runs `body` on a thread of its own, and expects it to end within a minute.
  private func expectEnd(_ body: @escaping @Sendable () -> Void) async throws {
    let hasEnded = Atomic(false)
    Thread.detachNewThread {
      body()
      hasEnded.store(true, ordering: .releasing)
    }
    try await eventually("it does not end") { hasEnded.load(ordering: .acquiring) }
  }

  @Test func afterASessionThatWasNotOpenedTheServiceIsAskedAgain() async throws {
    let keyring = try await PrivateKeyring(scripted: "no-first-session")
    let backend = keyring.backend { $0.connectTimeout = .seconds(8) }
    let error = thrown { () throws(SecretError) in _ = try backend.lookUp(identifier) }
    #expect(error?.code == .timedOut && error?.reason.contains("8") == true, "\(String(describing: error))")
    #expect(try backend.text(identifier) != nil)
  }

  /// Whether there is a keyring is asked once, over the connection that is used then.
  @Test func theConnectionThatFoundTheServiceIsUsed() async throws {
    let keyring = try await PrivateKeyring(.encrypted)
    try keyring.backend().store("x", identifier)
    let backend = keyring.backend()
    #expect(try backend.isAvailable())
    let chosen = try await BackendConfiguration(environment: keyring.environment).backend()
    try FileManager.default.removeItem(atPath: keyring.path("run/bus"))
    #expect(try backend.text(identifier) == "x")
    #expect(try chosen.text(identifier) == "x")
  }

  @Test func aServiceThatStopsAnsweringTimesOut() async throws {
    let keyring = try await PrivateKeyring(scripted: "silent-after-session")
    let backend = keyring.backend { $0.callTimeout = .milliseconds(200) }
    try await expectEveryCall(of: backend, toThrow: .timedOut)
  }

  @Test func aSessionThatDoesNotWorkIsReplacedOnce() async throws {
    let keyring = try await PrivateKeyring(scripted: "bad-session")
    let backend = keyring.backend()
    #expect(try backend.text(identifier) == "s3cret")
    #expect(try backend.text(identifier) == "s3cret")
    #expect(try keyring.calls().filter { $0 == "OpenSession" }.count == 2)
  }

  @Test func aKilledDaemonIsUnavailableUntilItRunsAgain() async throws {
    let keyring = try await PrivateKeyring(.encrypted)
    let backend = keyring.backend()
    try backend.store("before", identifier)
    try await keyring.killDaemon()
    try await expectEveryCall(of: backend, toThrow: .unavailable)
    try await keyring.startDaemon()
    #expect(try backend.text(identifier) == "before")
    try backend.store("after", identifier)
    try await keyring.restartDaemon()
    #expect(try backend.text(identifier) == "after")
  }

  @Test func theBusStartsAKilledDaemonAgain() async throws {
    let keyring = try await PrivateKeyring(.passwordless, startsDaemon: false)
    try keyring.write(
      """
      [D-BUS Service]
      Name=org.freedesktop.secrets
      Exec=/usr/bin/env -S HOME=\(keyring.path("home")) XDG_DATA_HOME=\(keyring.path("data")) \
      XDG_RUNTIME_DIR=\(keyring.path("run")) gnome-keyring-daemon --start --foreground --components=secrets

      """, to: "services/org.freedesktop.secrets.service")
    try await eventually("the bus does not know the service") {
      try keyring.callBus("ReloadConfig")
      return try keyring.backend().isAvailable()
    }
    let status = keyring.status
    #expect(status.isServiceActivatable && !status.isServiceRunning, "a probe starts nothing")
    let backend = keyring.backend()
    try backend.store("stored", identifier)
    let pid = try #require(try serviceProcess(keyring))
    #expect(kill(pid, SIGKILL) == 0)
    #expect(try backend.text(identifier) == "stored")
    if let pid = try serviceProcess(keyring) { kill(pid, SIGKILL) }
  }

  @Test func aRestartedBusIsReachedAgain() async throws {
    let keyring = try await PrivateKeyring(.encrypted)
    let backend = keyring.backend()
    try backend.store("before", identifier)
    try keyring.killBus()
    let error = thrown { () throws(SecretError) in _ = try backend.lookUp(identifier) }
    #expect(error?.code == .unavailable)
    try await keyring.startBus()
    try await keyring.startDaemon()
    #expect(try backend.text(identifier) == "before")
  }

  @Test func aMissingCollectionIsAConfigurationError() async throws {
    let keyring = try await PrivateKeyring(.encrypted)
    let backend = keyring.backend { $0.collection = "no such collection" }
    try await expectEveryCall(of: backend, toThrow: .configuration)
  }

  @Test func aCollectionIsNamedByItsLabelOrItsAlias() async throws {
    let keyring = try await PrivateKeyring(.encrypted)
    let labelled = keyring.backend { $0.collection = "Login" }
    try labelled.store("x", identifier)
    #expect(try labelled.text(identifier) == "x")
    #expect(try keyring.backend { $0.collection = "login" }.text(identifier) == "x")
    #expect(try keyring.backend().text(identifier) == "x")
    #expect(try keyring.backend { $0.collection = "session" }.text(identifier) == nil)
  }

  @Test func aProbeReportsTheServiceAndItsDefaultCollection() async throws {
    let keyring = try await PrivateKeyring(.encrypted)
    let status = keyring.status
    #expect(status.isBusReachable && status.isServiceRunning)
    #expect(status.collection == "Login" && status.isLocked == false && !status.mayPrompt)
    // A locked keyring has a collection only if it contains a secret.
    try keyring.backend().store("x", identifier)
    try await keyring.restartDaemon(unlocking: false)
    #expect(keyring.status.isLocked == true && keyring.status.isServiceRunning)
  }

  private func serviceProcess(_ keyring: PrivateKeyring) throws -> pid_t? {
    let answer = try keyring.callBus("GetConnectionUnixProcessID", "string:org.freedesktop.secrets")
    return answer.split(separator: " ").last.flatMap { pid_t($0.trimmingCharacters(in: .newlines)) }
  }
}
#endif
