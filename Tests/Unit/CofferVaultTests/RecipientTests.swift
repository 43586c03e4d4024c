import CofferCore
import CofferSimulation
import CofferTestSupport
@testable import CofferVault
import CofferVaultFormat
import Foundation
import Testing

@Suite struct RecipientTests {
  private static let own = identity(
    "AGE-SECRET-KEY-1FHPQSRA34H87EZG7ZAJWZT7E55RM58F0835ZFF09YJASLTK4H22QLXZDZP")

  /// A new identity, or the one with the given text.
  private static func identity(_ text: String? = nil) -> VaultIdentity {
    do {
      if let text { return try VaultIdentity.parse(SecretBytes(text))[0] }
      return try VaultIdentity.generate(isPostQuantum: false)
    } catch { fatalError("\(error)") }
  }

  private func recipient(_ identity: VaultIdentity) throws -> VaultRecipient {
    try #require(identity.recipient)
  }

  private func source(_ identities: VaultIdentity...) -> [VaultCredentialSource] {
    [VaultCredentialSource("a test's identity", .identities(identities))]
  }

  /// A vault with a key slot and one of `identity`'s recipient, which has the secret `name`.
  private func vault(for identity: VaultIdentity) throws -> TestVault {
    let vault = try TestVault()
    try vault.open().addKeySlot(.recipient(recipient(identity)), label: "laptop")
    try vault.open().set("name", [1, 2, 3])
    return vault
  }

  private func open(_ vault: TestVault, _ identities: VaultIdentity..., pins: [String] = []) -> VaultBackend {
    var options = VaultOptions.cheap
    options.pins = pins
    return VaultBackend(
      path: vault.path,
      credentials: [VaultCredentialSource("a test's identity", .identities(identities))],
      options: options)
  }

  private let name: SecretIdentifier

  init() throws { name = try SecretIdentifier(service: "tests", account: "name") }

  @Test func anIdentityOpensTheSlotOfItsRecipientUnderAPin() throws {
    let (own, other) = (Self.identity(), Self.identity())
    let vault = try vault(for: own)
    let pin = try vault.open().pin()
    #expect(try open(vault, own, pins: [pin]).lookUp(name) != nil)
    #expect(try open(vault, other, own, pins: [pin]).lookUp(name) != nil)
    #expect(
      thrown { () throws(SecretError) in try open(vault, other, pins: [pin]).unlock() }?.code == .wrongKey)
    let slot = try #require(VaultBackend(path: vault.path, credentials: []).description().keySlots.last)
    #expect(try slot.recipient == recipient(own) && slot.kind == .identity && slot.label == "laptop")
  }

  @Test func aVaultThatOnlyAnIdentityOpenedIsUsedAfterAPersonTrustedIt() throws {
    let own = Self.identity()
    let vault = try vault(for: own)
    let (backend, name) = (open(vault, own), name)
    let before = try vault.bytes
    #expect(thrown { () throws(SecretError) in _ = try backend.lookUp(name) }?.code == .untrusted)
    let write = thrown { () throws(SecretError) in try backend.store(SecretBytes([4]), for: name) }
    #expect(write?.code == .untrusted)
    #expect(thrown { () throws(SecretError) in _ = try backend.verify() }?.code == .untrusted)
    #expect(thrown { () throws(SecretError) in _ = try backend.openKeySlots() }?.code == .untrusted)
    // The vault now knows its keys, and is still not used.
    #expect(
      thrown { () throws(SecretError) in _ = try backend.withMasterKey { _, _ in } }?.code == .untrusted)
    #expect(try vault.bytes == before)
    try backend.trust()
    #expect(try backend.lookUp(name) != nil)
  }

  /// Only the vault whose pin the person compared is trusted, even if another vault has taken its place since.
  @Test func aVaultThatWasExchangedAfterItsPinWasComparedIsNotTrusted() throws {
    let own = Self.identity()
    let (vault, other) = (try vault(for: own), try vault(for: own))
    let backend = open(vault, own)
    let pin = try backend.unconfirmed().pin
    #expect(try pin == vault.open().pin())
    #expect(thrown { () throws(SecretError) in _ = try backend.lookUp(name) }?.code == .untrusted)
    let bytes = try vault.bytes
    try Data(other.bytes).write(to: URL(filePath: vault.path))
    #expect(
      thrown { () throws(SecretError) in try open(vault, own).trust(pin: pin) }?.code == .unexpectedVault)
    #expect(thrown { () throws(SecretError) in try backend.trust(pin: pin) } != nil)
    try Data(bytes).write(to: URL(filePath: vault.path))
    try vault.open().set("name", [4])
    let again = open(vault, own)
    try again.trust(pin: pin)
    #expect(try again.lookUp(name) != nil)
  }

  @Test func aNewMasterKeyNeedsNoIdentity() throws {
    let (first, second) = (Self.identity(), Self.identity())
    let vault = try vault(for: first)
    try vault.open().addKeySlot(.recipient(recipient(second)))
    let old = try vault.open().withMasterKey { _, master in master }
    let slots = try VaultBackend(path: vault.path, credentials: []).description().keySlots
    try vault.open().removeKeySlots(ids: [slots[1].id])
    #expect(try vault.open().withMasterKey { _, master in !master.isEqual(to: old) })
    let pin = try vault.open().pin()
    #expect(try open(vault, second, pins: [pin]).lookUp(name) != nil)
    #expect(
      thrown { () throws(SecretError) in try open(vault, first, pins: [pin]).unlock() }?.code == .wrongKey)
    let after = try VaultBackend(path: vault.path, credentials: []).description().keySlots
    #expect(after == [slots[0], slots[2]])
  }

  @Test func aVaultCanHaveRecipientsAlone() throws {
    let (own, other) = (Self.identity(), Self.identity())
    let directory = try TemporaryDirectory()
    let path = directory.file("team.vault")
    let own2 = try recipient(own)
    try VaultBackend.create(
      at: path, credential: .recipient(own2), recipients: [recipient(other), own2], options: .cheap)
    #expect(
      try VaultBackend(path: path, credentials: []).description().keySlots.map(\.recipient) == [
        own2, recipient(other),
      ])
    let backend = VaultBackend(path: path, credentials: source(other), options: .cheap)
    try backend.trust()
    try backend.set("name", [1])
    try backend.rekey()
    #expect(try backend.lookUp(name) != nil)
  }

  @Test func aRecipientHasOneSlot() throws {
    let vault = try vault(for: Self.own)
    let error = thrown { () throws(SecretError) in
      try vault.open().addKeySlot(
        .recipient(VaultRecipient(key: Self.own.recipient?.key ?? [], isPostQuantum: false)))
    }
    #expect(error?.code == .alreadyExists)
    let identities = thrown { () throws(SecretError) in try vault.open().addKeySlot(.identities([Self.own])) }
    #expect([.alreadyExists, .invalidKey].contains(identities?.code))
  }

  /// Recipients that have a slot are skipped. If one is unusable, or there is no room for all, no slot is added.
  @Test func severalRecipientsJoinInOneStep() throws {
    let own = try recipient(Self.own)
    let vault = try vault(for: Self.own)
    let recipients = try (0..<3).map { _ in try recipient(Self.identity()) }
    let before = try vault.open().read { $0.state.sequence }
    let added = try vault.open().addKeySlots(
      for: [recipients[0], own, recipients[0], recipients[1]], label: "team")
    #expect(added.map(\.recipient) == Array(recipients.prefix(2)) && added.allSatisfy { $0.label == "team" })
    #expect(try vault.open().read { $0.state.sequence } == before + 1)
    let bytes = try vault.bytes
    let unusable = VaultRecipient(key: [UInt8](repeating: 0, count: 32), isPostQuantum: false)
    let refused = thrown { () throws(SecretError) in
      try vault.open().addKeySlots(for: [recipients[2], unusable])
    }
    #expect(refused?.code == .invalidKey)
    let many = try (0..<237).map { _ in try recipient(Self.identity()) }
    #expect(thrown { () throws(SecretError) in try vault.open().addKeySlots(for: many) }?.code == .tooLarge)
    #expect(try vault.open().addKeySlots(for: recipients.prefix(2) + [own]).isEmpty)
    #expect(try vault.bytes == bytes)
    #expect(try vault.open().addKeySlots(for: many.dropLast()).count == 236)
  }

  /// Another process adds slots at some point of the call. Each recipient that was added has exactly one slot.
  @Test func whoJoinsWhileAnotherJoinsHasASlotToo() throws {
    let made = try SimulatedDisk.withVault()
    let (one, other) = (try recipient(Self.identity()), try recipient(Self.identity()))
    var successes = 0
    for call in 1...40 {
      let disk = made.duplicate()
      var hasJoined = false
      disk.interrupt(atCall: disk.calls + call) {
        hasJoined =
          thrown { () throws(SecretError) in
            try disk.openVault(options: .impatient(.zero)).addKeySlots(for: [other, one])
          } == nil
      }
      let added = try disk.openVault().addKeySlots(for: [one])
      disk.interrupt(atCall: nil)
      #expect(added.count == (hasJoined ? 0 : 1) || added.map(\.recipient) == [one], "call \(call)")
      let found = try disk.openVault().description().keySlots.compactMap(\.recipient)
      #expect(
        Set(found) == (hasJoined ? [one, other] : [one]) && found.count == Set(found).count, "call \(call)")
      if hasJoined { successes += 1 }
    }
    #expect(successes > 3)
  }

  @Test func aRecipientOfLowOrderIsRefused() throws {
    let vault = try TestVault()
    let before = try vault.bytes
    for key in [[UInt8](repeating: 0, count: 32), [1] + [UInt8](repeating: 0, count: 31)] {
      let error = thrown { () throws(SecretError) in
        try vault.open().addKeySlot(.recipient(VaultRecipient(key: key, isPostQuantum: false)))
      }
      #expect(error?.code == .invalidKey)
    }
    #expect(try vault.bytes == before)
  }

  /// A holder of the key can give a vault a recipient that nobody can wrap a key for. It keeps nobody's key in the
  /// vault.
  @Test func aRecipientThatIsNoPublicKeyIsNamedAndCanBeRemoved() throws {
    var vault = ForgedVault(base: [.init("a", [1])])
    let parameters = KeySlotParameters.recipient(zeros(32)[...], share: zeros(32)[...], isHybrid: false)
    let header = KeySlot.header(
      id: SystemRandomness().bytes16(), parameters: parameters, created: 0, label: "")
    let slot = try KeySlot(header: header, commitment: zeros(32), wrappedKey: zeros(72))
    vault.slots = [slot]
    let disk = try vault.disk()
    let error = thrown { () throws(SecretError) in try disk.openVault().rekey() }
    #expect(error?.code == .invalidKey && error?.description.contains(slot.id.hex) == true)
    try disk.openVault().removeKeySlots(ids: [slot.id.hex])
    #expect(try disk.openVault().get("a") == [1])
  }

  @Test func whoWasRemovedIsRemembered() throws {
    let (first, second) = (Self.identity(), Self.identity())
    let vault = try vault(for: first)
    try vault.open().addKeySlot(.recipient(recipient(second)), label: "server")
    let slots = try VaultBackend(path: vault.path, credentials: []).description().keySlots
    try vault.open().removeKeySlots(ids: [slots[1].id])
    try vault.open().rekey()
    let former = try vault.open().formerKeySlots()
    #expect(former.map(\.slot.id) == [slots[1].id] && former.map(\.hasNewMasterKey) == [true])
    #expect(former.map(\.slot.label) == ["laptop"] && former.map(\.slot.recipient) == [slots[1].recipient])
    #expect(former.map(\.slot.created) == [slots[1].created])
  }

  /// A passphrase that is changed without a new master key leaves a trace until the next one. 256 traces fill the list.
  @Test func aRemovalUnderTheSameMasterKeyIsRememberedUntilTheNextOne() throws {
    let vault = try TestVault()
    let backend = vault.open()
    var slot = try backend.addKeySlot(.passphrase(SecretBytes("first")))
    let first = slot.id
    for number in 1...256 {
      slot = try backend.replaceKeySlot(id: slot.id, with: .passphrase(SecretBytes("\(number)")))
    }
    #expect(try backend.formerKeySlots().first?.slot.id == first)
    #expect(try backend.formerKeySlots().count { !$0.hasNewMasterKey } == 256)
    let before = try vault.bytes
    let error = thrown { () throws(SecretError) in
      _ = try backend.replaceKeySlot(id: slot.id, with: .passphrase(SecretBytes("one more")))
    }
    #expect(try error?.code == .tooLarge && vault.bytes == before)
    try backend.removeKeySlots(ids: [slot.id])
    let former = try vault.open().formerKeySlots()
    #expect(former.count == 256 && former.allSatisfy(\.hasNewMasterKey))
    #expect(former.last?.slot.id == slot.id && former.first?.slot.id != first)
  }

  @Test func aVaultHasUpTo240Slots() throws {
    let vault = try TestVault()
    let recipients = try (0..<239).map { _ in try recipient(Self.identity()) }
    let directory = try TemporaryDirectory()
    let path = directory.file("large.vault")
    try VaultBackend.create(
      at: path, credential: FixedCredential.key.credential, recipients: recipients, options: .cheap)
    let backend = VaultBackend(path: path, credentials: [FixedCredential.key], options: .cheap)
    try backend.set("name", [1])
    #expect(try VaultBackend(path: path, credentials: []).description().keySlots.count == 240)
    let more = try recipient(Self.identity())
    #expect(thrown { () throws(SecretError) in try backend.addKeySlot(.recipient(more)) }?.code == .tooLarge)
    let error = thrown { () throws(SecretError) in
      _ = try VaultBackend.create(
        at: directory.file("larger.vault"), credential: FixedCredential.key.credential,
        recipients: recipients + [more],
        options: .cheap)
    }
    #expect(error?.code == .tooLarge)
    #expect(try vault.open().lookUp(name) == nil)
  }

  // MARK: Texts

  @Test func theTextsOfAgeAreRead() throws {
    let lines =
      "# a comment\r\n\r\nAGE-SECRET-KEY-1FHPQSRA34H87EZG7ZAJWZT7E55RM58F0835ZFF09YJASLTK4H22QLXZDZP\r\n"
    let identities = try VaultIdentity.parse(SecretBytes(lines))
    #expect(identities.count == 1 && identities[0].recipient == Self.own.recipient)
    let (text, ownText) = (identities[0].text(), Self.own.text())
    let isSame = text.isEqual(to: ownText)
    #expect(isSame)
    let recipient = try recipient(Self.own)
    #expect(try VaultRecipient(recipient.description) == recipient)
    #expect(
      try VaultRecipient.parse(lines: "# who\n\n\(recipient)\r\n\(recipient)\n") == [recipient, recipient])
  }

  @Test(arguments: [
    "", "#", "age1", "AGE-SECRET-KEY-1", "AGE-SECRET-KEY-PQ-1", "# no identity\n",
    "age-secret-key-1fhpqsra34h87ezg7zajwzt7e55rm58f0835zff09yjasltk4h22qlxzdzp",
    "AGE-SECRET-KEY-1FHPQSRA34H87EZG7ZAJWZT7E55RM58F0835ZFF09YJASLTK4H22QLXZDZQ",
    " AGE-SECRET-KEY-1FHPQSRA34H87EZG7ZAJWZT7E55RM58F0835ZFF09YJASLTK4H22QLXZDZP",
  ]) func aMalformedTextIsRefused(_ text: String) {
    let identity = thrown { () throws(SecretError) in _ = try VaultIdentity.parse(SecretBytes(text))
    }
    #expect(identity?.code == .invalidKey)
    #expect(thrown { () throws(SecretError) in _ = try VaultRecipient(text) }?.code == .invalidKey)
    #expect(
      thrown { () throws(SecretError) in _ = try VaultRecipient.parse(lines: text) }?.code == .invalidKey)
  }

  @Test func aKeyAndIdentitiesAreToldByTheirTexts() throws {
    let key = VaultKey.generate()
    let kind = try VaultCredential.parse(VaultKey.text(of: key)).kind
    #expect(kind == .key)
    let other = try VaultCredential.parse(Self.own.text()).kind
    #expect(other == .identity)
    #expect(
      thrown { () throws(SecretError) in _ = try VaultCredential.parse(SecretBytes("x")) }?.code
        == .invalidKey)
  }

  // MARK: Hybrid recipients

  @Test func withoutXWingAHybridRecipientIsUnsupported() throws {
    let key = [UInt8](repeating: 5, count: 1216)
    let recipient = VaultRecipient(key: key, isPostQuantum: true)
    #expect(recipient.description.utf8.count == 1959)
    #expect(try VaultRecipient(recipient.description) == recipient)
    if VaultIdentity.supportsPostQuantum { return }
    let vault = try TestVault()
    let before = try vault.bytes
    #expect(
      thrown { () throws(SecretError) in try vault.open().addKeySlot(.recipient(recipient)) }?.code
        == .unsupported)
    #expect(
      thrown { () throws(SecretError) in _ = try VaultIdentity.generate(isPostQuantum: true) }?.code
        == .unsupported)
    #expect(try vault.bytes == before)
  }

  @Test func aHybridIdentityOpensItsSlot() throws {
    guard VaultIdentity.supportsPostQuantum else { return }
    let own = try VaultIdentity.generate(isPostQuantum: true)
    let vault = try vault(for: own)
    try vault.open().rekey()
    let pin = try vault.open().pin()
    #expect(try open(vault, own, pins: [pin]).lookUp(name) != nil)
    let again = try VaultIdentity.parse(own.text())
    #expect(again[0].isPostQuantum && again[0].recipient == own.recipient)
  }
}
