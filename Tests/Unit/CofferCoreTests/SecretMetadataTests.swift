import CofferCore
import Foundation
import Testing

@Suite struct SecretMetadataTests {
  private let early = Date(timeIntervalSince1970: 1)
  private let middle = Date(timeIntervalSince1970: 2)
  private let late = Date(timeIntervalSince1970: 3)

  private func error(_ metadata: SecretMetadata) -> SecretError.Code? {
    do throws(SecretError) {
      try metadata.validate()
      return nil
    } catch {
      return error.code
    }
  }

  @Test func boundsAreInBytes() {
    let (label, name) = (String(repeating: "é", count: 512), String(repeating: "é", count: 64))
    #expect(error(SecretMetadata()) == nil)
    #expect(error(SecretMetadata(label: "", attributes: ["a": ""])) == nil)
    let most = Dictionary(uniqueKeysWithValues: (0..<32).map { ("\($0)", label) })
    #expect(error(SecretMetadata(label: label, attributes: most)) == nil)
    #expect(error(SecretMetadata(attributes: [name: "x"])) == nil)
    for bad in [
      SecretMetadata(label: label + "x"), SecretMetadata(label: "a\0"), SecretMetadata(attributes: ["": "x"]),
      SecretMetadata(attributes: [name + "x": "x"]), SecretMetadata(attributes: ["a\0": "x"]),
      SecretMetadata(attributes: ["a": label + "x"]), SecretMetadata(attributes: ["a": "\0"]),
      SecretMetadata(attributes: most.merging(["one more": ""]) { $1 }),
    ] {
      #expect(error(bad) == .invalidMetadata)
    }
  }

  private func metadata(
    label: String? = nil, created: Date? = nil, modified: Date? = nil, expires: Date? = nil,
    attributes: [String: String] = [:]
  ) -> SecretMetadata {
    var metadata = SecretMetadata(label: label, expires: expires, attributes: attributes)
    (metadata.created, metadata.modified) = (created, modified)
    return metadata
  }

  private var existing: SecretMetadata {
    metadata(label: "l", created: early, modified: early, expires: late, attributes: ["a": "b"])
  }

  @Test func aNewValueKeepsLabelAndAttributesAndHasItsOwnExpiry() throws {
    for (change, expires) in [
      (MetadataChange.newValue, nil), (.newValue(expires: middle), middle), (.keep, late),
    ] {
      let expected = metadata(
        label: "l", created: early, modified: middle, expires: expires, attributes: ["a": "b"])
      #expect(try change.applied(to: existing, now: middle) == expected)
    }
  }

  @Test func givenMetadataReplacesTheExisting() throws {
    let given = metadata(created: late, modified: early, attributes: ["c": "d"])
    #expect(
      try MetadataChange.replace(given).applied(to: existing, now: middle)
        == metadata(created: early, modified: middle, attributes: ["c": "d"]))
  }

  @Test func theFirstStoreSetsTheGivenTimeOrNow() throws {
    for change in [MetadataChange.newValue, .keep, .replace(SecretMetadata())] {
      #expect(
        try change.applied(to: nil, now: middle) == metadata(created: middle, modified: middle))
    }
    #expect(
      try MetadataChange.replace(metadata(created: early)).applied(to: nil, now: middle)
        == metadata(created: early, modified: middle))
    let refusal = #expect(throws: SecretError.self) {
      try MetadataChange.replace(SecretMetadata(label: "a\0")).applied(to: nil, now: middle)
    }
    #expect(refusal?.code == .invalidMetadata)
  }
}
