internal import CofferLibc

/// One end of the socket or the pipes between a program and a helper. Not thread-safe.
package struct RemoteConnection: ~Copyable {
  private let input, output: Int32
  private var received: [UInt8] = []

  package enum Failure: Error {
    /// The other end is closed.
    case ended
    case timedOut
    /// What came is no message, or too long.
    case malformed
  }

  /// The caller keeps the descriptors open. They may be one and the same.
  package init(input: Int32, output: Int32) { (self.input, self.output) = (input, output) }

  /// Sends a message. Without a deadline, waits as long as the other end does.
  package func send(_ message: RemoteMessage, until deadline: ContinuousClock.Instant? = nil) throws(Failure) {
    let bytes = message.serialized
    var sent = 0
    while sent < bytes.count {
      try wait(POLLOUT, on: output, until: deadline)
      let count = bytes[sent...].withUnsafeBytes { rest in
        // A socket: without SIGPIPE, and without waiting beyond the deadline.
        let flags = Int32(Int(MSG_NOSIGNAL) | Int(MSG_DONTWAIT))
        let count = CofferLibc.send(output, rest.baseAddress, rest.count, flags)
        return count < 0 && errno == ENOTSOCK ? write(output, rest.baseAddress, rest.count) : count
      }
      if count > 0 { sent += count } else if errno != EINTR && errno != EAGAIN { throw .ended }
    }
  }

  /// Whether something was received that is not read yet, or the other end is closed.
  package var hasInput: Bool {
    var request = pollfd(fd: input, events: Int16(POLLIN), revents: 0)
    return !received.isEmpty || poll(&request, 1, 0) > 0
  }

  /// Receives a message, or returns `nil` if the other end is closed before one begins.
  package mutating func receive(until deadline: ContinuousClock.Instant? = nil) throws(Failure) -> RemoteMessage? {
    var searched = 0
    while !received[searched...].contains(UInt8(ascii: "\n")) {
      searched = received.count
      guard searched < RemoteMessage.maximumLine else { throw .malformed }
      guard try receiveSome(until: deadline) else {
        if received.isEmpty { return nil }
        throw .ended
      }
    }
    let line = Array(received.prefix { $0 != UInt8(ascii: "\n") })
    guard var message = RemoteMessage(line: line) else { throw .malformed }
    received.removeFirst(line.count + 1)
    for index in message.pieces.indices {
      let count = message.pieces[index].bytes.count
      while received.count < count {
        guard try receiveSome(until: deadline) else { throw .ended }
      }
      message.pieces[index].bytes = Array(received[..<count])
      received.removeFirst(count)
    }
    return message
  }

  /// Returns `false` at the end.
  private mutating func receiveSome(until deadline: ContinuousClock.Instant?) throws(Failure) -> Bool {
    var room = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      try wait(POLLIN, on: input, until: deadline)
      let count = read(input, &room, room.count)
      if count >= 0 {
        received += room[..<count]
        return count > 0
      }
      if errno != EINTR && errno != EAGAIN { throw .ended }
    }
  }

  private func wait(_ events: Int32, on descriptor: Int32, until deadline: ContinuousClock.Instant?) throws(Failure) {
    while true {
      let left = deadline.map { (($0 - .now) / .milliseconds(1)).rounded(.up) }
      if let left, left <= 0 { throw .timedOut }
      var request = pollfd(fd: descriptor, events: Int16(events), revents: 0)
      let count = poll(&request, 1, left.map { Int32(min($0, 3_600_000)) } ?? -1)
      if count > 0 { return }
      if count < 0 && errno != EINTR { throw .ended }
    }
  }
}
