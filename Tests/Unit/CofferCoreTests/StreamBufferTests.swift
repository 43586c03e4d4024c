import CofferCore
import CofferTestSupport
import Testing

@Suite(.timeLimit(.minutes(30))) struct StreamBufferTests {
  /// The elements of the stream up to `last`, or up to its end.
  private func collect(_ stream: AsyncStream<Int>, upTo last: Int) async -> [Int] {
    var elements: [Int] = []
    for await element in stream {
      elements.append(element)
      if element == last { break }
    }
    return elements
  }

  @Test func everyElementArrivesInOrder() async {
    let buffer = StreamBuffer<Int>(limit: 10_000)
    let stream = buffer.stream {}
    for number in 0..<5000 { buffer.yield(number) }
    #expect(await collect(stream, upTo: 4999) == Array(0..<5000))
  }

  @Test func aWaitingConsumerGetsALaterElement() async {
    let buffer = StreamBuffer<Int>(limit: 10)
    let stream = buffer.stream {}
    let consumer = Task { await collect(stream, upTo: 4) }
    for number in 0..<5 {
      await Task.yield()
      buffer.yield(number)
    }
    #expect(await consumer.value == [0, 1, 2, 3, 4])
  }

  @Test func anUnreadStreamKeepsTheNewestElementsUpToTheLimit() async {
    let buffer = StreamBuffer<Int>(limit: 10)
    let stream = buffer.stream {}
    for number in 0..<100 { buffer.yield(number, size: 3) }
    #expect(await collect(stream, upTo: 99) == [97, 98, 99])
  }

  @Test func theNewestElementIsKeptAlthoughItIsTooLarge() async {
    let buffer = StreamBuffer<Int>(limit: 10)
    let stream = buffer.stream {}
    buffer.yield(1, size: 5)
    buffer.yield(2, size: 50)
    #expect(await collect(stream, upTo: 2) == [2])
  }

  @Test func oldElementsAreReplacedByOne() async {
    let buffer = StreamBuffer<Int>(limit: 10, replacingOldBy: -1)
    let stream = buffer.stream {}
    for number in 0..<12 { buffer.yield(number) }
    #expect(await collect(stream, upTo: 11) == [-1, 11])
  }

  @Test func anUnreadStreamOfChangesEndsInAChangeOfEverything() async throws {
    let broadcast = ChangeBroadcast()
    let stream = broadcast.subscribe()
    for number in 0..<5000 {
      broadcast.send(SecretChange(try SecretIdentifier(service: "tests", account: "\(number)")))
    }
    var first: SecretChange?
    for await change in stream {
      first = change
      break
    }
    #expect(first == SecretChange(nil))
  }

  @Test func theEndIsReportedOnceWhenTheStreamIsReleasedOrItsReaderCancelled() async throws {
    let ends = Count()
    do {
      let buffer = StreamBuffer<Int>(limit: 10)
      _ = buffer.stream { ends.add() }
      #expect(ends.value == 1)
    }
    let buffer = StreamBuffer<Int>(limit: 10)
    let stream = buffer.stream { ends.add() }
    let reader = Task { await collect(stream, upTo: 1) }
    await Task.yield()
    reader.cancel()
    #expect(await reader.value == [])
    try await eventually("the end was not reported") { ends.value == 2 }
  }
}
