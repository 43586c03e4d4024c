#if Keyring
import CofferCore
import CofferKeyring
import CofferTestSupport
import Foundation
import Testing

/// What gnome-keyring returns after it was killed and started again.
@Suite(.needsKeyring) struct PersistenceTests {
  @Test(arguments: [PrivateKeyring.Kind.encrypted, .passwordless])
  func everyValueSurvivesARestart(_ kind: PrivateKeyring.Kind) async throws {
    let keyring = try await PrivateKeyring(kind)
    let backend = keyring.backend()
    for (name, bytes) in awkwardValues {
      try backend.set(name, bytes)
      #expect(try backend.get(name) == bytes, "\(name), before the restart")
    }
    try await keyring.restartDaemon()
    for (name, bytes) in awkwardValues {
      #expect(try backend.get(name) == bytes, "\(name), after the restart")
    }
    #expect(try backend.items(inService: "tests").count == awkwardValues.count)
  }

  @Test(arguments: [PrivateKeyring.Kind.encrypted, .passwordless])
  func namesLabelsAndAttributesSurviveARestart(_ kind: PrivateKeyring.Kind) async throws {
    let keyring = try await PrivateKeyring(kind)
    let backend = keyring.backend()
    let texts = awkwardValues.compactMap { String(validating: $0.bytes, as: UTF8.self) }
      .filter { !$0.isEmpty && !$0.utf8.contains(0) }
    let items = try texts.map { text in
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
    for item in items { try backend.store(item.identifier.account, item.identifier, item.metadata) }
    try await keyring.restartDaemon()
    for item in items {
      #expect(try backend.text(item.identifier) == item.identifier.account)
      let found = try #require(try backend.item(item.identifier))
      #expect(found.metadata.label == item.metadata.label)
      #expect(found.metadata.expires == item.metadata.expires)
      #expect(found.metadata.attributes == item.metadata.attributes)
    }
  }

  @Test func theLargestValueSurvivesARestart() async throws {
    let keyring = try await PrivateKeyring(.encrypted)
    let backend = keyring.backend()
    let bytes = (0..<KeyringBackend.maximumSecretSize).map { UInt8(truncatingIfNeeded: $0 &* 7919 >> 3) }
    try backend.set("large", bytes)
    let error = thrown { () throws(SecretError) in
      try backend.store(SecretBytes(bytes + [0]), for: identifier("large"))
    }
    #expect(error?.code == .tooLarge)
    try await keyring.restartDaemon()
    #expect(try backend.get("large") == bytes)
  }

  @Test func aDefaultLabelIsNotReportedUnlessItWasGiven() async throws {
    let keyring = try await PrivateKeyring(.encrypted)
    let backend = keyring.backend()
    let identifier = try SecretIdentifier(service: "svc", account: "alice")
    try backend.store("1", identifier)
    #expect(try backend.item(identifier)?.metadata.label == nil)
    #expect(try backend.item(identifier)?.metadata.attributes == [:])
    for label in ["Password for 'alice' on 'svc'", ""] {
      try backend.store("1", identifier, SecretMetadata(label: label))
      #expect(try backend.item(identifier)?.metadata.label == label)
    }
  }
}
#endif
