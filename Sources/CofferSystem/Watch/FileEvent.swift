internal import CofferLibc

struct FileEvent {
  let watch: Int32
  let mask: UInt32
  let name: [UInt8]

  /// Events were lost.
  var isOverflow: Bool { mask & UInt32(IN_Q_OVERFLOW) != 0 }
  /// The directory was removed or unmounted.
  var isEnd: Bool { mask & UInt32(IN_IGNORED) != 0 }
}

extension Descriptor {
  /// Reads the events that inotify has. Does not wait.
  func readEvents() -> [FileEvent] {
    var events: [FileEvent] = []
    var buffer = [UInt8](repeating: 0, count: 16_384)
    while true {
      let count = read(number, &buffer, buffer.count)
      guard count > 0 else { return events }
      buffer.withUnsafeBytes { buffer in
        let headerLength = MemoryLayout<inotify_event>.size
        var offset = 0
        while offset + headerLength <= count {
          let event = buffer.loadUnaligned(fromByteOffset: offset, as: inotify_event.self)
          let start = offset + headerLength
          let end = min(start + Int(event.len), count)
          // The name is padded with NULs.
          let name = Array(buffer[start..<end].prefix { $0 != 0 })
          events.append(FileEvent(watch: event.wd, mask: event.mask, name: name))
          offset = end
        }
      }
    }
  }
}
