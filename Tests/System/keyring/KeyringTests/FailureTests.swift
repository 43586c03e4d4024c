#if Keyring
import CofferCore
import CofferKeyring
import CofferTestSupport
import Foundation
import Testing

extension KeyringTests {
  @Suite(.serialized) struct Failures {
    let identifier: SecretIdentifier
    init() throws { identifier = try SecretIdentifier(service: "svc", account: "alice") }

    @Test func aLockedKeyringIsLockedAndLosesNothing() throws {
      let keyring = try PrivateKeyring(.encrypted)
      let backend = keyring.backend()
      try backend.store("kept", identifier)
      try keyring.restartDaemon(unlocking: false)
      var took: [String: Int] = [:]
      for (name, call) in calls {
        took[name] = milliseconds { #expect(backend.code(call) == .locked, "\(name)") }
      }
      #expect(took.values.allSatisfy { $0 < 60_000 })
      // What is not there is known without unlocking: the service indexes locked collections too.
      #expect(try backend.text(SecretIdentifier(service: "svc", account: "nobody")) == nil)
      try keyring.restartDaemon()
      #expect(try backend.text(identifier) == "kept")
      #expect(try backend.items(inService: nil).count == 1)
    }

    @Test func withoutABusItIsUnavailable() throws {
      let directory = FileManager.default.temporaryDirectory.appendingPathComponent(
        "coffer-\(UUID().uuidString)"
      )
      try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(at: directory) }
      for address in [
        nil, "", "unix:path=\(directory.path)/none", "autolaunch:", "autolaunch:scope=*install-path",
      ] {
        let environment = ["XDG_RUNTIME_DIR": directory.path, "DBUS_SESSION_BUS_ADDRESS": address ?? ""]
        let backend = KeyringBackend(environment: environment)
        for (name, call) in calls {
          let took = milliseconds {
            #expect(backend.code(call) == .unavailable, "\(name), \(address ?? "nil")")
          }
          #expect(took < 60_000)
        }
        #expect(!KeyringBackend.isAvailable(environment: environment))
        #expect(KeyringBackend.probe(environment: environment).problem?.code == .unavailable)
      }
      let backend = KeyringBackend(environment: ["DBUS_SESSION_BUS_ADDRESS": "nonsense"])
      #expect(backend.code { _ = try $0.lookUp(identifier) } == .configuration)
    }

    @Test func aBusWithoutAServiceIsUnavailable() throws {
      let keyring = try PrivateKeyring(.encrypted, startsDaemon: false)
      let backend = keyring.backend()
      for (name, call) in calls { #expect(backend.code(call) == .unavailable, "\(name)") }
      let status = KeyringBackend.probe(environment: keyring.environment)
      #expect(status.isBusReachable && !status.isServiceRunning && !status.isServiceActivatable)
      #expect(status.problem == nil)
      #expect(!KeyringBackend.isAvailable(environment: keyring.environment))
    }

    @Test func aBusThatStaysSilentTimesOut() throws {
      let directory = FileManager.default.temporaryDirectory.appendingPathComponent(
        "coffer-\(UUID().uuidString)"
      )
      try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(at: directory) }
      let socket = try ListeningSocket(directory.path + "/bus")
      defer { socket.close() }
      var options = KeyringOptions(environment: [:])
      options.connectTimeout = .seconds(0.5)
      // The second address is none: the socket is found in the runtime directory.
      for address in ["unix:path=\(directory.path)/bus", ""] {
        let backend = KeyringBackend(
          options: options,
          environment: ["DBUS_SESSION_BUS_ADDRESS": address, "XDG_RUNTIME_DIR": directory.path]
        )
        for (name, call) in calls {
          let took = milliseconds { #expect(backend.code(call) == .timedOut, "\(name)") }
          #expect(took < 30_000)
        }
      }
    }

    @Test func aServiceThatStaysSilentTimesOut() throws {
      let keyring = try PrivateKeyring(.encrypted, startsDaemon: false)
      let service = try ScriptedService(keyring, ["silent"])
      defer { service.kill() }
      let backend = keyring.backend { $0.connectTimeout = .seconds(0.5) }
      for (name, call) in calls {
        let took = milliseconds { #expect(backend.code(call) == .timedOut, "\(name)") }
        #expect(took < 30_000)
      }
    }

    @Test func aServiceThatFallsSilentTimesOut() throws {
      let keyring = try PrivateKeyring(.encrypted, startsDaemon: false)
      let service = try ScriptedService(keyring, ["silent-after-session"])
      defer { service.kill() }
      let backend = keyring.backend { $0.callTimeout = .seconds(0.5) }
      for (name, call) in calls {
        let took = milliseconds { #expect(backend.code(call) == .timedOut, "\(name)") }
        #expect(took < 30_000)
      }
    }

    @Test func aKilledDaemonIsSaidOrSurvived() throws {
      let keyring = try PrivateKeyring(.encrypted)
      let backend = keyring.backend()
      try backend.store("before", identifier)
      try keyring.killDaemon()
      for (name, call) in calls {
        let took = milliseconds { #expect(backend.code(call) == .unavailable, "\(name)") }
        #expect(took < 60_000)
      }
      try keyring.startDaemon()
      #expect(try backend.text(identifier) == "before")
      try backend.store("after", identifier)
      try keyring.restartDaemon()
      #expect(try backend.text(identifier) == "after")
    }

    @Test func aKilledDaemonIsStartedByTheBus() throws {
      let keyring = try PrivateKeyring(.passwordless, startsDaemon: false, servicesDirectory: true)
      let service = """
        [D-BUS Service]
        Name=org.freedesktop.secrets
        Exec=/usr/bin/env -S HOME=\(keyring.path("home")) XDG_DATA_HOME=\(keyring.path("data")) \
        XDG_RUNTIME_DIR=\(keyring.path("run")) gnome-keyring-daemon --start --foreground --components=secrets

        """
      try Data(service.utf8).write(
        to: URL(fileURLWithPath: keyring.path("services/org.freedesktop.secrets.service"))
      )
      try waitUntil("the bus does not know the service") {
        try keyring.run(
          "dbus-send",
          [
            "--session", "--print-reply", "--dest=org.freedesktop.DBus", "/",
            "org.freedesktop.DBus.ReloadConfig",
          ],
          package: "dbus-bin"
        )
        return KeyringBackend.isAvailable(environment: keyring.environment)
      }
      let status = KeyringBackend.probe(environment: keyring.environment)
      #expect(status.isServiceActivatable && !status.isServiceRunning, "a probe starts nothing")
      let backend = keyring.backend()
      try backend.store("stored", identifier)
      let pid = try #require(try servicePID(keyring))
      #expect(kill(pid, SIGKILL) == 0)
      #expect(try backend.text(identifier) == "stored")
      if let pid = try servicePID(keyring) { kill(pid, SIGKILL) }
    }

    @Test func aBusThatIsRestartedIsReachedAgain() throws {
      let keyring = try PrivateKeyring(.encrypted)
      let backend = keyring.backend()
      try backend.store("before", identifier)
      keyring.killBus()
      #expect(backend.code { _ = try $0.lookUp(identifier) } == .unavailable)
      try keyring.restartBus()
      try keyring.startDaemon()
      #expect(try backend.text(identifier) == "before")
    }

    @Test func aCollectionThatIsNotThereIsAConfigurationError() throws {
      let keyring = try PrivateKeyring(.encrypted)
      let backend = keyring.backend { $0.collection = "no such collection" }
      for (name, call) in calls { #expect(backend.code(call) == .configuration, "\(name)") }
      let named = keyring.backend { $0.collection = "Login" }
      try named.store("x", identifier)
      #expect(try named.text(identifier) == "x")
      #expect(try keyring.backend().text(identifier) == "x")
      #expect(try keyring.backend { $0.collection = "session" }.text(identifier) == nil)
    }

    @Test func aProbeTellsWhatThereIs() throws {
      let keyring = try PrivateKeyring(.encrypted)
      var status = KeyringBackend.probe(environment: keyring.environment)
      #expect(status.isAvailable && status.isBusReachable && status.isServiceRunning)
      #expect(status.defaultCollection == "Login" && status.isLocked == false && !status.mayPrompt)
      try keyring.restartDaemon(unlocking: false)
      // A keyring that is not there yet has no collection; one with a secret in it does.
      try keyring.restartDaemon()
      try keyring.backend().store("x", identifier)
      try keyring.restartDaemon(unlocking: false)
      status = KeyringBackend.probe(environment: keyring.environment)
      #expect(status.isLocked == true && status.isAvailable)
    }

    private var calls: [(String, (KeyringBackend) throws -> Void)] {
      [
        ("lookup", { _ = try $0.lookUp(identifier) }), ("store", { try $0.store("new", identifier) }),
        ("remove", { _ = try $0.remove(identifier) }), ("items", { _ = try $0.items(inService: nil) }),
        ("items of a service", { _ = try $0.items(inService: "svc") }),
        ("item", { _ = try $0.item(identifier) }),
      ]
    }

    private func servicePID(_ keyring: PrivateKeyring) throws -> pid_t? {
      let answer = try keyring.run(
        "dbus-send",
        [
          "--session", "--print-reply=literal", "--dest=org.freedesktop.DBus", "/",
          "org.freedesktop.DBus.GetConnectionUnixProcessID", "string:org.freedesktop.secrets",
        ],
        package: "dbus-bin"
      )
      return answer.output.split(separator: " ").last.flatMap {
        pid_t($0.trimmingCharacters(in: .whitespacesAndNewlines))
      }
    }
  }
}

/// A socket that connections queue up at, and nobody answers.
final class ListeningSocket {
  private let descriptor: Int32
  init(_ path: String) throws {
    descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    guard result == 0, listen(descriptor, 100) == 0 else { throw TestFailure("No socket could be made.") }
  }
  func close() { Glibc.close(descriptor) }
}
#endif
