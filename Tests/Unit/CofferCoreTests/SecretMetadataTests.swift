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

  @Test func nilKeepsTheExistingMetadata() {
    let existing = SecretMetadata(
      label: "l",
      created: early,
      modified: early,
      expires: late,
      attributes: ["a": "b"]
    )
    var expected = existing
    expected.modified = middle
    #expect(SecretMetadata.merged(nil, over: existing, now: middle) == expected)
  }

  @Test func givenMetadataReplacesTheExisting() {
    let existing = SecretMetadata(
      label: "l",
      created: early,
      modified: early,
      expires: late,
      attributes: ["a": "b"]
    )
    let merged = SecretMetadata.merged(
      SecretMetadata(created: late, modified: early, attributes: ["c": "d"]),
      over: existing,
      now: middle
    )
    #expect(merged == SecretMetadata(created: early, modified: middle, attributes: ["c": "d"]))
  }

  @Test func theFirstStoreSetsTheGivenTimeOrNow() {
    #expect(
      SecretMetadata.merged(nil, over: nil, now: middle) == SecretMetadata(created: middle, modified: middle)
    )
    #expect(
      SecretMetadata.merged(SecretMetadata(created: early), over: nil, now: middle)
        == SecretMetadata(created: early, modified: middle)
    )
  }
}
