#if Keyring
import CofferCore
import CofferKeyring
import CofferTestSupport
import Foundation
import Testing

/// Against real daemons, one at a time.
@Suite(.serialized) struct KeyringTests {}

extension SecretBackend {
  func text(_ identifier: SecretIdentifier) throws -> String? { try lookUp(identifier)?.string() }

  func store(_ text: String, _ identifier: SecretIdentifier, _ metadata: SecretMetadata? = nil) throws {
    try store(SecretBytes(copying: text), for: identifier, metadata: metadata)
  }

  /// The code of the error that `body` throws.
  func code(_ body: (Self) throws -> Void) -> SecretError.Code? {
    do {
      try body(self)
      return nil
    } catch {
      return (error as? SecretError)?.code
    }
  }
}

extension KeyringTests {
  @Suite(.serialized) struct Values {
    @Test(arguments: [PrivateKeyring.Kind.encrypted, .passwordless])
    func everyValueSurvivesARestart(_ kind: PrivateKeyring.Kind) throws {
      let keyring = try PrivateKeyring(kind)
      let backend = keyring.backend()
      for (name, bytes) in awkwardValues {
        let identifier = try SecretIdentifier(service: "awkward", account: name)
        try backend.store(SecretBytes(copying: bytes), for: identifier)
        #expect(try backend.lookUp(identifier)?.array() == bytes, "\(name), at once")
      }
      try keyring.restartDaemon()
      for (name, bytes) in awkwardValues {
        let identifier = try SecretIdentifier(service: "awkward", account: name)
        #expect(try backend.lookUp(identifier)?.array() == bytes, "\(name), after a restart")
      }
      #expect(try backend.items(inService: "awkward").count == awkwardValues.count)
    }

    @Test(arguments: [PrivateKeyring.Kind.encrypted, .passwordless])
    func namesLabelsAndAttributesSurviveARestart(_ kind: PrivateKeyring.Kind) throws {
      let keyring = try PrivateKeyring(kind)
      let backend = keyring.backend()
      let texts = awkwardValues.compactMap { String(validating: $0.bytes, as: UTF8.self) }
        .filter { !$0.isEmpty && !$0.utf8.contains(0) }
      func item(_ text: String) throws -> SecretItem {
        SecretItem(
          identifier: try SecretIdentifier(service: "S" + text, account: text),
          metadata: SecretMetadata(
            label: text,
            expires: Date(timeIntervalSince1970: 2_000_000_000.25),
            attributes: [
              "name": text, "N" + text: "value", "service": "x", "coffer:expires": "y", "xdg:schema": "z",
            ]
          )
        )
      }
      for text in texts { try backend.store(text, item(text).identifier, item(text).metadata) }
      try keyring.restartDaemon()
      for text in texts {
        let expected = try item(text)
        #expect(try backend.text(expected.identifier) == text)
        let found = try #require(try backend.item(expected.identifier))
        #expect(found.metadata.label == expected.metadata.label)
        #expect(found.metadata.expires == expected.metadata.expires)
        #expect(found.metadata.attributes == expected.metadata.attributes)
      }
    }

    @Test func theLargestValueSurvivesARestart() throws {
      let keyring = try PrivateKeyring(.encrypted)
      let backend = keyring.backend()
      let identifier = try SecretIdentifier(service: "large", account: "a")
      let bytes = (0..<KeyringBackend.maximumSecretSize).map { UInt8(truncatingIfNeeded: $0 &* 7919 >> 3) }
      try backend.store(SecretBytes(copying: bytes), for: identifier)
      #expect(
        backend.code { try $0.store(SecretBytes(copying: bytes + [0]), for: identifier) } == .tooLarge
      )
      try keyring.restartDaemon()
      #expect(try backend.lookUp(identifier)?.array() == bytes)
    }

    @Test func aDefaultLabelIsNoLabel() throws {
      let keyring = try PrivateKeyring(.encrypted)
      let backend = keyring.backend()
      let identifier = try SecretIdentifier(service: "svc", account: "alice")
      try backend.store("1", identifier)
      #expect(try backend.item(identifier)?.metadata.label == nil)
      #expect(try backend.item(identifier)?.metadata.attributes == [:])
      try backend.store("1", identifier, SecretMetadata(label: "Password for 'alice' on 'svc'"))
      #expect(try backend.item(identifier)?.metadata.label == "Password for 'alice' on 'svc'")
      try backend.store("1", identifier, SecretMetadata(label: ""))
      #expect(try backend.item(identifier)?.metadata.label == "")
    }

    @Test func tenThousandLookupsDoNotGrow() throws {
      let keyring = try PrivateKeyring(.encrypted)
      let backend = keyring.backend()
      let identifier = try SecretIdentifier(service: "svc", account: "alice")
      let absent = try SecretIdentifier(service: "svc", account: "nobody")
      try backend.store(String(repeating: "x", count: 1000), identifier)
      func lookUp(_ count: Int) throws {
        for round in 0..<count {
          _ = try backend.lookUp(identifier)
          if round.isMultiple(of: 10) { _ = try backend.lookUp(absent) }
        }
      }
      try lookUp(2000)  // caches fill, and arenas
      let before = try residentKilobytes()
      try lookUp(10_000)
      let growth = try residentKilobytes() - before
      // A leak of one message or secret at each lookup would be 10,000 KB and more.
      #expect(growth < 4000, "\(growth) KB")
    }

    @Test func aBackendLeavesNothingOpen() throws {
      let keyring = try PrivateKeyring(.encrypted)
      let identifier = try SecretIdentifier(service: "svc", account: "alice")
      func use() throws {
        let backend = keyring.backend()
        try backend.store("x", identifier)
        _ = backend.changes()
      }
      for _ in 0..<5 { try use() }
      let before = try openFiles()
      for _ in 0..<50 { try use() }
      try waitUntil("\(try openFiles()) files are open, and \(before) were before") {
        try openFiles() <= before + 5
      }
    }

    private func residentKilobytes() throws -> Int {
      let text = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
      let pages = try #require(text.split(separator: " ").dropFirst().first.flatMap { Int($0) })
      return pages * Int(getpagesize()) / 1024
    }

    private func openFiles() throws -> Int {
      try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
    }
  }
}
#endif
