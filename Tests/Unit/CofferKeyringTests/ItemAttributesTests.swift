#if Keyring
import CofferCore
import Foundation
import Testing

@testable import CofferKeyring

@Suite struct ItemAttributesTests {
  private let identifier: SecretIdentifier
  init() throws { identifier = try SecretIdentifier(service: "svc", account: "alice") }

  private func stored(
    _ metadata: SecretMetadata?,
    over existing: [String: String]? = nil
  ) -> [String: String] {
    ItemAttributes.attributes(identifier, metadata, over: existing)
  }

  private func read(_ attributes: [String: String], label: String? = nil) -> SecretMetadata {
    FoundItem(path: "/item", attributes: attributes, label: label).metadata(of: identifier)
  }

  private func created(_ seconds: Double) -> SecretMetadata {
    var metadata = SecretMetadata()
    metadata.created = Date(timeIntervalSince1970: seconds)
    return metadata
  }

  @Test func anItemWithoutMetadataHasTheIdentifierAndAGeneralSchema() {
    let expected = [
      "service": "svc", "username": "alice", "xdg:schema": "org.freedesktop.Secret.Generic",
    ]
    #expect(stored(nil) == expected)
    #expect(ItemAttributes.identifier(expected) == identifier)
    #expect(read(expected) == SecretMetadata())
  }

  @Test func metadataIsRestored() {
    var metadata = SecretMetadata(
      label: "A label",
      expires: Date(timeIntervalSince1970: 2_000_000_000.25),
      attributes: [
        "name": "value", "service": "x", "username": "y", "xdg:schema": "z", "coffer:expires": "w",
        "xdg:other": "v",
      ]
    )
    metadata.created = Date(timeIntervalSince1970: 1_000_000_000)
    #expect(read(stored(metadata), label: ItemAttributes.label(identifier, metadata)) == metadata)
  }

  @Test func theDefaultLabelCountsOnlyIfItWasGiven() {
    let label = "Password for 'alice' on 'svc'"
    #expect(ItemAttributes.label(identifier, nil) == label)
    #expect(read(stored(nil), label: label).label == nil)
    #expect(read(stored(SecretMetadata(label: label)), label: label).label == label)
  }

  @Test func anOverwriteKeepsTheCreationTimeAndWhatOtherProgramsWrote() {
    let metadata = created(2_000_000_000)
    let existing = ["service": "svc", "username": "alice", "xdg:schema": "org.example", "target": "x"]
    #expect(stored(metadata, over: existing) == existing)
    let earlier = stored(created(1_000_000_000))
    #expect(read(stored(metadata, over: earlier)).created == Date(timeIntervalSince1970: 1_000_000_000))
  }

  @Test func anOverwriteReplacesTheAttributesThatThisModuleWrote() {
    let existing = stored(SecretMetadata(attributes: ["a": "1", "b c%": "2"]))
    #expect(existing["coffer:attributes"] == "a b%20c%25")
    let foreign = existing.merging(["application": "mutt"]) { $1 }
    let read = read(foreign)
    #expect(read.attributes == ["a": "1", "b c%": "2", "application": "mutt"])
    let overwritten = stored(SecretMetadata(attributes: ["d": "3"]), over: foreign)
    #expect(self.read(overwritten).attributes == ["d": "3", "application": "mutt"])
    #expect(overwritten["coffer:attributes"] == "d")
    // What is stored as it was read is still another program's.
    #expect(stored(read, over: foreign)["coffer:attributes"] == "a b%20c%25")
  }

  @Test func attributesOfTheServiceAreNotMetadata() throws {
    let keePassXC = [
      "service": "svc", "username": "alice", "Title": "t", "UserName": "u", "URL": "", "Notes": "n",
      "Uuid": "0", "Path": "/t", "TOTP": "1", "own": "x",
    ]
    #expect(read(keePassXC).attributes == ["own": "x"])
    #expect(ItemAttributes.distinction(keePassXC) == ["own": "x"])
    #expect(stored(nil, over: keePassXC) == ["service": "svc", "username": "alice", "own": "x"])
    let renamed = ItemAttributes.attributes(
      keePassXC, renamedTo: try SecretIdentifier(service: "svc", account: "bob"), created: nil)
    #expect(renamed == ["service": "svc", "username": "bob", "own": "x"])
    #expect(read(["Title": "t"]).attributes == ["Title": "t"], "of another service it is metadata")
  }

  @Test func timesOfTheServiceAreInSecondsAndZeroIsUnknown() {
    let item = FoundItem(path: "/item", attributes: stored(nil), created: 5, modified: 0)
    let metadata = item.metadata(of: identifier)
    #expect(metadata.created == Date(timeIntervalSince1970: 5))
    #expect(metadata.modified == nil)
    #expect(read(["coffer:expires": "tomorrow"]).expires == nil)
  }

  @Test(arguments: [
    [:], ["service": "svc"], ["username": "alice"], ["service": "", "username": "alice"],
    ["service": "svc", "username": String(repeating: "x", count: 1025)],
  ])
  func attributesWithoutAValidIdentifierHaveNone(_ attributes: [String: String]) {
    #expect(ItemAttributes.identifier(attributes) == nil)
  }

  @Test func onlyAttributesOfOtherProgramsDistinguishItems() {
    func distinction(_ more: [String: String]) -> [String: String] {
      ItemAttributes.distinction(ItemAttributes.identity(identifier).merging(more) { $1 })
    }
    #expect(distinction([:]).isEmpty)
    #expect(distinction(["xdg:schema": "org.example", "coffer:label": "given", "target": "default"]).isEmpty)
    #expect(distinction(["target": "somewhere"]) == ["target": "somewhere"])
    #expect(distinction(["application": "mutt"]) == ["application": "mutt"])
    #expect(ItemAttributes.withoutProgram(["application": "mutt", "target": "x"]) == ["target": "x"])
    #expect(ItemAttributes.distinction(stored(SecretMetadata(attributes: ["env": "prod"]))).isEmpty)
  }

  @Test func aLockedItemMayHaveAnIdentifierIfItsAttributesAreHiddenOrHashed() {
    #expect(ItemAttributes.mayBeNamed([:]))
    #expect(ItemAttributes.mayBeNamed(["service": "svc"]))
    #expect(ItemAttributes.mayBeNamed(["gkr:compat:hashed:service": "0123"]))
    #expect(!ItemAttributes.mayBeNamed(["xdg:schema": "org.gnome.keyring.Note"]))
  }

  @Test func anItemWithAHiddenUserNameIsNotOneWithout() {
    #expect(ItemAttributes.isWithoutUserName(["service": "svc", "account": "ann"]))
    #expect(!ItemAttributes.isWithoutUserName(["account": "ann", "username": "ben"]))
    #expect(!ItemAttributes.isWithoutUserName(["account": "ann", "gkr:compat:hashed:username": "0123"]))
  }

  @Test func attributesAreComparedByBytes() {
    #expect(ItemAttributes.areEqual(["a": "caf\u{E9}"], ["a": "caf\u{E9}"]))
    #expect(!ItemAttributes.areEqual(["a": "caf\u{E9}"], ["a": "cafe\u{301}"]))
    #expect(!ItemAttributes.areEqual(["a": "1"], ["a": "1", "b": "2"]))
  }

  @Test func datesOutsideFourDigitYearsAreInvalid() {
    for (seconds, isValid) in [
      (-62_135_596_800.0, true), (-62_135_596_801, false), (253_402_300_799, true), (253_402_300_800, false),
    ] {
      let date = Date(timeIntervalSince1970: seconds)
      for metadata in [created(date.timeIntervalSince1970), SecretMetadata(expires: date)] {
        let result = Result { () throws(SecretError) in try ItemAttributes.validate(metadata) }
        #expect((result.failure == nil) == isValid)
        #expect(result.failure.map { $0.code == .invalidMetadata } ?? true)
      }
    }
  }
}

extension Result {
  fileprivate var failure: Failure? { if case .failure(let error) = self { error } else { nil } }
}
#endif
