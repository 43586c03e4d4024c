/// A first-in, first-out queue. Both ends take constant time on average.
struct Fifo<Element> {
  private var elements: [Element?] = []
  private var head = 0

  var count: Int { elements.count - head }
  var isEmpty: Bool { count == 0 }

  mutating func append(_ element: Element) { elements.append(element) }

  mutating func popFirst() -> Element? {
    guard head < elements.count else { return nil }
    let element = elements[head]
    elements[head] = nil
    head += 1
    if head == elements.count || head > 1024 {
      elements.removeFirst(head)
      head = 0
    }
    return element
  }
}
