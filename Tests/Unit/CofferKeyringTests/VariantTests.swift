#if Keyring
import CofferCore
import Testing

@testable import CofferKeyring

/// Values of the bus are read only as what they are: a service may send anything.
@Suite struct VariantTests {
  private static var samples: [String: Variant] {
    [
      "s": .string("/text"), "o": .path("/path"), "b": .boolean(true), "u": .unsigned32(7),
      "ao": .paths(["/path"]), "v": .boxed(.string("text")), "a{ss}": .dictionary(["a": "b"]),
      "a{sv}": .properties([("a", .boolean(true))]), "(s)": .tuple([.string("/text")]),
      "(ao)": .tuple([.paths(["/path"])]), "()": .tuple([]),
      "(osss)": .tuple([.path("/path"), .string(""), .string(""), .string("")]),
    ]
  }

  private static func isRead(_ value: Variant) -> [String: Bool] {
    [
      "string": value.string != nil, "path": value.path != nil, "boolean": value.boolean != nil,
      "unsigned": value.unsigned != nil, "unsigned32": value.unsigned32 != nil,
      "unboxed": value.unboxed != nil, "strings": value.strings != nil,
      "paths": value.paths != nil,
      "dictionary": value.dictionary != nil, "properties": value.properties != nil,
      "secret": value.isSecret,
    ]
  }

  @Test func aValueIsReadOnlyAsItsOwnType() {
    let readers = [
      "s": "string", "o": "path", "b": "boolean", "u": "unsigned32", "v": "unboxed",
      "ao": "paths",
      "a{ss}": "dictionary", "a{sv}": "properties",
    ]
    for (type, value) in Self.samples {
      let found = Self.isRead(value).filter(\.value).map(\.key)
      #expect(found == (readers[type].map { [$0] } ?? []), "\(type)")
    }
  }

  @Test func aContentIsReturnedAsItIs() {
    #expect(Variant.string("ä\n").string == "ä\n")
    #expect(Variant.path("/a/b").path == "/a/b")
    #expect(Variant.boolean(true).boolean == true && Variant.boolean(false).boolean == false)
    #expect(Variant.unsigned32(.max).unsigned32 == .max)
    #expect(Variant.paths(["/a", "/b"]).paths == ["/a", "/b"])
    #expect(Variant.paths([]).paths == [])
    #expect(Variant.dictionary(["a": "b", "c": "d"]).dictionary == ["a": "b", "c": "d"])
    #expect(Variant.dictionary([:]).signature == "a{ss}" && Variant.properties([]).signature == "a{sv}")
    let names = (0..<20).map { String(UnicodeScalar(UInt8(97 + $0))) }
    let sorted = Variant.dictionary(Dictionary(uniqueKeysWithValues: names.map { ($0, "") }))
    #expect(sorted.children.map { $0[0]?.string } == names)
    #expect(Variant.properties([("a", .boolean(true))]).properties?["a"]?.boolean == true)
    #expect(Variant.boxed(.string("a")).unboxed?.string == "a")
  }

  /// An element that is missing or has another type is an error, and never a value of a default.
  @Test func anElementOfAnotherTypeIsRefused() throws {
    let answer = Variant.tuple([.path("/a"), .path("/"), .string("/b")])
    #expect(try answer.objectPath(0) == "/a")
    #expect(try answer.objectPath(1) == nil)
    #expect(try answer.element(2, \.string) == "/b")
    expectMalformed { () throws(ServiceFailure) in _ = try answer.objectPath(2) }
    expectMalformed { () throws(ServiceFailure) in _ = try answer.objectPath(3) }
    expectMalformed { () throws(ServiceFailure) in _ = try answer.element(0, \.boolean) }
    for (type, value) in Self.samples
    where !type.hasPrefix("(") && !type.hasPrefix("a") && type != "v" {
      expectMalformed { () throws(ServiceFailure) in _ = try value.objectPath(0) }
      #expect(value.children.isEmpty && value[0] == nil, "\(type)")
    }
    #expect(answer[3] == nil && answer.children.count == 3)
  }

  private func expectMalformed(
    _ body: () throws(ServiceFailure) -> Void, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    do throws(ServiceFailure) {
      try body()
      Issue.record("nothing was thrown", sourceLocation: sourceLocation)
    } catch {
      guard case .malformed = error else {
        Issue.record("\(error) is another error", sourceLocation: sourceLocation)
        return
      }
    }
  }
}
#endif
