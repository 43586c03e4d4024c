import CofferCore
import Testing

@Suite struct SecretIdentifierTests {
  private func make(_ service: String, _ account: String) throws -> SecretIdentifier {
    try SecretIdentifier(service: service, account: account)
  }

  @Test func bothPartsAreKeptVerbatim() throws {
    let identifier = try make(" a/b\n", "cafe\u{301}%00")
    #expect(Array(identifier.service.utf8) == Array(" a/b\n".utf8))
    #expect(Array(identifier.account.utf8) == Array("cafe\u{301}%00".utf8))
  }

  @Test func equalityComparesBytes() throws {
    #expect("caf\u{E9}" == "cafe\u{301}", "Swift's strings are equal where identifiers must not be")
    let (composed, decomposed) = (try make("s", "caf\u{E9}"), try make("s", "cafe\u{301}"))
    #expect(composed != decomposed)
    #expect(try make("caf\u{E9}", "s") != make("cafe\u{301}", "s"))
    #expect(Set([composed, decomposed]).count == 2)
    #expect([composed: 1, decomposed: 2][try make("s", "caf\u{E9}")] == 1)
    #expect(composed.hashValue == (try make("s", "caf\u{E9}")).hashValue)
    #expect(try make("a", "bc") != make("ab", "c"))
  }

  @Test func hashesSeparateTheTwoParts() throws {
    #expect(try make("a", "bc").hashValue != make("ab", "c").hashValue)
    #expect(try make("caf\u{E9}", "x").hashValue != make("cafe\u{301}", "x").hashValue)
  }

  @Test func sortsByBytesServiceFirst() throws {
    let sorted = try [
      make("A", "z"), make("a", "A"), make("a", "B"), make("a", "a"), make("a", "a\u{1}"), make("a", "aa"),
      make("a", "e\u{301}"), make("a", "z"), make("a", "\u{E9}"), make("a", "\u{FF5E}"),
      make("a", "\u{1F511}"),
      make("aa", "A"), make("e\u{301}", "a"), make("\u{E9}", "a"),
    ]
    #expect(sorted.shuffled().sorted() == sorted)
    for (index, one) in sorted.enumerated() {
      #expect(!(one < one))
      for other in sorted[(index + 1)...] { #expect(one < other && !(other < one)) }
    }
  }

  @Test func boundsAreInBytes() throws {
    let longest = String(repeating: "é", count: 512)
    #expect(try make(longest, longest).account.utf8.count == 1024)
    for bad in ["", longest + "x", String(repeating: "x", count: 1025), "\0", "a\0", "\0a", "a\0b"] {
      for pair in [(bad, "x"), ("x", bad)] {
        let error = try #require(
          #expect(throws: SecretError.self) { try SecretIdentifier(service: pair.0, account: pair.1) }
        )
        #expect(error.code == .invalidIdentifier)
        #expect(error.reason.contains(pair.0 == "x" ? "account" : "service"))
        #expect(error.advice != nil)
      }
    }
    #expect(try make("x", "y").description == "x/y")
  }
}
