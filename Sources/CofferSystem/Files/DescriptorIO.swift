package import CofferCore
internal import CofferLibc

/// Reads `descriptor` to its end, into guarded memory only.
///
/// Returns `nil` if there are more than `limit` bytes. Waits for data on a non-blocking descriptor. Throws `.io` if
/// reading fails, and `.timedOut` if the end is not reached before `deadline`; without a deadline, the call waits until
/// the writer closes it. `name` names the descriptor in the errors.
package func readToEnd(
  of descriptor: Int32, named name: String, limit: Int, deadline: ContinuousClock.Instant? = nil,
  isRegular: Bool = false
) throws(SecretError) -> SecretBytes? {
  var held = SecretBytes([])
  var count = 0
  var isAtEnd = false
  while !isAtEnd && count <= limit {
    let capacity = min(max(4096, count * 4), limit + 1)
    held = try SecretBytes(count: capacity) { block throws(SecretError) in
      held.withBytes { bytes in
        bytes.extracting(first: count).withUnsafeBytes { block.copyMemory(from: $0) }
      }
      while count < capacity && !isAtEnd {
        let room = UnsafeMutableRawBufferPointer(rebasing: block[count...])
        let length = try readSome(of: descriptor, into: room, named: name, deadline: deadline)
        // A regular file fills the room, except at its end.
        isAtEnd = length == 0 || isRegular && length < room.count
        count += length
      }
    }
  }
  return count > limit ? nil : held.prefix(count)
}

/// Reads at least one byte, and returns 0 at the end only.
private func readSome(
  of descriptor: Int32, into room: UnsafeMutableRawBufferPointer, named name: String,
  deadline: ContinuousClock.Instant?
) throws(SecretError) -> Int {
  var mustWait = deadline != nil
  while true {
    do throws(FileSystemError) {
      if mustWait {
        guard try wait(for: POLLIN, on: descriptor, until: deadline) else { throw FileSystemError(ETIMEDOUT) }
      }
      let count = read(descriptor, room.baseAddress, room.count)
      if count >= 0 { return count }
      if errno != EINTR && errno != EAGAIN { throw FileSystemError(errno) }
      mustWait = deadline != nil || errno == EAGAIN
    } catch  where error.number == ETIMEDOUT && deadline != nil {
      throw SecretError(
        .timedOut, "The end of \(name) was not reached before the deadline.",
        advice: "Check that its writer closes it.")
    } catch {
      throw SecretError(.io, "Could not read \(name): \(error).", advice: "Use a readable file or pipe.")
    }
  }
}

/// Returns up to `count` bytes of the file, or `nil` if it cannot be read. Never waits: the file may be a FIFO.
package func beginning(ofFile path: String, count: Int) -> [UInt8]? {
  let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
  guard file >= 0 else { return nil }
  defer { close(file) }
  var bytes = [UInt8](repeating: 0, count: count)
  let length = read(file, &bytes, count)
  return length < 0 ? nil : Array(bytes.prefix(length))
}

/// Writes all of `bytes`, with as many calls as needed. Waits for room on a non-blocking descriptor. Throws the `errno`
/// of write(2), or `EIO` if it writes nothing.
package func writeAll(_ bytes: Span<UInt8>, to descriptor: Int32) throws(FileSystemError) {
  try bytes.withUnsafeBytes { bytes throws(FileSystemError) in
    var rest = bytes
    while !rest.isEmpty {
      let count = write(descriptor, rest.baseAddress, rest.count)
      if count == 0 { throw FileSystemError(EIO) }
      if count > 0 {
        rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
      } else if errno == EAGAIN {
        _ = try wait(for: POLLOUT, on: descriptor, until: nil)
      } else if errno != EINTR {
        throw FileSystemError(errno)
      }
    }
  }
}

/// Writes all of `bytes`. Throws `.io`, which calls the descriptor `name`.
package func writeAll(_ bytes: Span<UInt8>, to descriptor: Int32, named name: String) throws(SecretError) {
  do throws(FileSystemError) {
    try writeAll(bytes, to: descriptor)
  } catch {
    throw SecretError(.io, "Could not write to \(name): \(error).")
  }
}

/// Waits until `events` of poll(2) occur on the descriptor. Returns `false` if `deadline` passes first. Throws the
/// `errno` of poll(2).
package func wait(
  for events: Int32, on descriptor: Int32, until deadline: ContinuousClock.Instant?
) throws(FileSystemError) -> Bool {
  while true {
    let left = deadline.map { (($0 - .now) / .milliseconds(1)).rounded(.up) }
    let milliseconds = left.map { Int32(min(max(0, $0), 3_600_000)) } ?? -1
    var request = pollfd(fd: descriptor, events: Int16(events), revents: 0)
    let count = poll(&request, 1, milliseconds)
    if count > 0 { return true }
    if count < 0 && errno != EINTR { throw FileSystemError(errno) }
    if let deadline, .now >= deadline { return false }
  }
}
