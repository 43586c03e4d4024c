#if Keyring
import Testing

@testable import CofferKeyring

@Suite struct SignalQueueTests {
  private let queue = SignalQueue()

  private func signal(_ member: String, _ arguments: Variant...) -> BusSignal {
    BusSignal(member: member, arguments: .tuple(arguments))
  }

  @Test func theLastEventOfEachItemCountsInTheOrderOfTheFirst() {
    queue.add(signal("ItemCreated", .path("/a")))
    queue.add(signal("ItemChanged", .path("/b")))
    queue.add(signal("ItemDeleted", .path("/a")))
    queue.add(signal("ItemChanged", .path("/b")))
    #expect(queue.drain() == [.deleted("/a"), .present("/b")])
    #expect(queue.isEmpty)
    #expect(queue.drain().isEmpty)
  }

  @Test func signalsOfCollectionsAreOneChangeOfEverything() {
    for member in ["CollectionCreated", "CollectionChanged", "CollectionDeleted"] {
      queue.add(signal(member, .path("/collection")))
    }
    #expect(queue.drain() == [.everything])
  }

  @Test func aNewOwnerIsAChangeOfEverythingAndAVanishedOneIsNot() {
    queue.addOwnerChange(signal("NameOwnerChanged", .string("name"), .string(":1.1"), .string("")))
    #expect(queue.isEmpty)
    queue.addOwnerChange(signal("NameOwnerChanged", .string("name"), .string(""), .string(":1.2")))
    #expect(queue.drain() == [.everything])
  }

  @Test func unknownAndMalformedSignalsAreIgnored() {
    queue.add(signal("PropertiesChanged", .path("/a")))
    queue.add(signal("ItemCreated", .boolean(true)))
    queue.add(signal("ItemDeleted"))
    queue.addOwnerChange(signal("NameOwnerChanged", .string("name")))
    #expect(queue.isEmpty)
  }
}
#endif
