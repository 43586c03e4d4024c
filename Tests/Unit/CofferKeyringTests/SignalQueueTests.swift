#if Keyring
import Testing

@testable import CofferKeyring

@Suite struct SignalQueueTests {
  private let queue = SignalQueue()

  private func add(_ member: String, _ arguments: Variant...) { queue.add(member, .tuple(arguments)) }

  private func addOwnerChange(_ arguments: Variant...) {
    queue.addOwnerChange("NameOwnerChanged", .tuple(arguments))
  }

  @Test func theLastEventOfEachItemCountsInTheOrderOfTheFirst() {
    add("ItemCreated", .path("/a"))
    add("ItemChanged", .path("/b"))
    add("ItemDeleted", .path("/a"))
    add("ItemChanged", .path("/b"))
    #expect(queue.drain() == [.deleted("/a"), .present("/b")])
    #expect(queue.isEmpty)
    #expect(queue.drain().isEmpty)
  }

  @Test func signalsOfCollectionsAreOneChangeOfEverything() {
    for member in ["CollectionCreated", "CollectionChanged", "CollectionDeleted"] {
      add(member, .path("/collection"))
    }
    #expect(queue.drain() == [.everything])
  }

  @Test func aNewOwnerIsAChangeOfEverythingAndAVanishedOneIsNot() {
    addOwnerChange(.string("name"), .string(":1.1"), .string(""))
    #expect(queue.isEmpty)
    addOwnerChange(.string("name"), .string(""), .string(":1.2"))
    #expect(queue.drain() == [.everything])
  }

  @Test func unknownAndMalformedSignalsAreIgnored() {
    add("PropertiesChanged", .path("/a"))
    add("ItemCreated", .boolean(true))
    add("ItemDeleted")
    addOwnerChange(.string("name"))
    #expect(queue.isEmpty)
  }
}
#endif
