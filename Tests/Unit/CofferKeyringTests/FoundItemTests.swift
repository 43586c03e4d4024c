#if Keyring
import CofferCore
import Testing

@testable import CofferKeyring

@Suite struct FoundItemTests {
  private func item(
    _ name: String, _ attributes: [String: String] = [:], label: String? = "l", modified: UInt64 = 1
  ) -> FoundItem {
    FoundItem(
      path: "/collection/\(name)", attributes: attributes.merging(["service": "s", "username": "u"]) { $1 },
      label: label, created: 0, modified: modified)
  }

  @Test func theItemThatWasModifiedLastIsTheGreatest() {
    #expect(item("1", modified: 2) > item("2"))
    #expect(item("10") > item("9"), "a longer path is a later one")
    #expect(item("1") > item("2", ["target": "work"]), "within one second the general item counts")
  }

  @Test func duplicatesHaveTheSameDistinctionAndLabel() {
    #expect(item("1", ["xdg:schema": "a"]).isDuplicate(of: item("2", ["coffer:expires": "x"])))
    #expect(!item("1").isDuplicate(of: item("2", label: "other")))
    #expect(!item("1").isDuplicate(of: item("2", ["application": "mutt"])))
    #expect(item("1").isAlike(item("2", ["application": "mutt"], label: "other")))
    #expect(!item("1").isAlike(item("2", ["target": "work"])))
    #expect(item("1").collection == "/collection")
  }

  @Test func severalDifferentItemsAreAmbiguous() throws {
    let identifier = try SecretIdentifier(service: "s", account: "u")
    try [FoundItem]().requireOne(identifier)
    try [item("1"), item("2")].requireOne(identifier)
    let different = [
      item("1", label: "Work", modified: 2), item("2", label: "Home"), item("3", label: "Home"),
    ]
    #expect(different.different.map(\.path) == ["/collection/1", "/collection/3"])
    do throws(ServiceFailure) {
      try different.requireOne(identifier)
      Issue.record("no error")
    } catch {
      #expect(error.secretError.code == .ambiguous)
      #expect(error.secretError.reason.contains("“Work”, “Home”"))
    }
  }
}
#endif
