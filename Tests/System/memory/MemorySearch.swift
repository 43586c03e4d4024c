import Foundation

/// Searches memory for any eight consecutive bytes of a secret: as raw bytes, as hexadecimal digits in either case, and
/// as base64 in either alphabet at each of the three alignments.
final class MemorySearch {
  /// A range of memory that contains bytes of a secret.
  struct Hit: CustomStringConvertible {
    let secret: String
    let address: UInt64
    var length: Int
    var description: String { "\(length) bytes of \(secret) at \(String(address, radix: 16))" }
  }

  private var windows: [UInt64: String] = [:]
  /// Whether a window ends with these three bytes. This lookup skips most of memory.
  private let ends = UnsafeMutablePointer<Bool>.allocate(capacity: 1 << 24)

  /// - Parameter secrets: Names and secrets of at least 16 bytes. Several secrets may have the same name.
  init(_ secrets: [(name: String, bytes: [UInt8])]) {
    ends.initialize(repeating: false, count: 1 << 24)
    for (name, bytes) in secrets {
      for spelling in Self.spellings(of: bytes) {
        for start in 0...(spelling.count - 8) {
          let window = spelling[start..<start + 8].reversed().reduce(0) { $0 << 8 | UInt64($1) }
          windows[window] = name
          ends[Int(window >> 40)] = true
        }
      }
    }
  }

  deinit { ends.deallocate() }

  static func spellings(of bytes: [UInt8]) -> [[UInt8]] {
    var spellings = [bytes]
    for digits in ["0123456789abcdef", "0123456789ABCDEF"] {
      let digits = Array(digits.utf8)
      spellings.append(bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
    }
    let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    for alphabet in ["\(letters)+/", "\(letters)-_"] {
      let alphabet = Array(alphabet.utf8)
      for alignment in 0..<3 {
        // Without the characters that also encode bits of the bytes before and after the secret.
        let bits = bytes.flatMap { byte in (0..<8).map { byte >> (7 - $0) & 1 } }
        let first = [0, 4, 2][alignment]
        spellings.append(
          stride(from: first, through: bits.count - 6, by: 6).map { start in
            alphabet[Int(bits[start..<start + 6].reduce(0) { $0 << 1 | $1 })]
          })
      }
    }
    return spellings
  }

  /// Searches the addresses from `start` to `end`. `read` copies a part into the buffer and returns its length. The
  /// search ends at the first part that cannot be read.
  func hits(
    from start: UInt64, to end: UInt64, read: (UnsafeMutableRawBufferPointer, UInt64) -> Int
  ) -> [Hit] {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 16)
    defer { buffer.deallocate() }
    guard let bytes = buffer.bindMemory(to: UInt8.self).baseAddress else { return [] }
    var hits: [Hit] = []
    var window: UInt64 = 0
    var address = start
    while address < end {
      let wanted = Int(min(end - address, UInt64(buffer.count)))
      let count = read(UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]), address)
      guard count > 0 else { break }
      var index = 0
      while index < count {
        window = window &>> 8 | UInt64(truncatingIfNeeded: bytes[index]) &<< 56
        index &+= 1
        guard ends[Int(truncatingIfNeeded: window &>> 40)], let secret = windows[window] else { continue }
        let place = address + UInt64(index) - 8
        if let last = hits.last, last.secret == secret, place < last.address + UInt64(last.length) {
          hits[hits.count - 1].length = Int(place - last.address) + 8
        } else {
          hits.append(Hit(secret: secret, address: place, length: 8))
        }
      }
      address += UInt64(count)
    }
    return hits
  }

  /// Searches the memory in a core dump, without its notes, which contain the processor's registers.
  func hits(inCoreDump path: String) throws -> [Hit] {
    let data = try Data(contentsOf: URL(fileURLWithPath: path), options: .alwaysMapped)
    return data.withUnsafeBytes { bytes in
      // Elf64_Ehdr and Elf64_Phdr of elf(5).
      let (table, count) = (
        Int(bytes.loadUnaligned(fromByteOffset: 32, as: UInt64.self)),
        Int(bytes.loadUnaligned(fromByteOffset: 56, as: UInt16.self))
      )
      let notes = (0..<count).map { table + 56 * $0 }
        .filter { bytes.loadUnaligned(fromByteOffset: $0, as: UInt32.self) == 4 }  // PT_NOTE
        .map { header in
          let start = bytes.loadUnaligned(fromByteOffset: header + 8, as: UInt64.self)
          return start..<start + bytes.loadUnaligned(fromByteOffset: header + 32, as: UInt64.self)
        }
      return hits(from: 0, to: UInt64(bytes.count)) { buffer, offset in
        buffer.copyMemory(
          from: UnsafeRawBufferPointer(rebasing: bytes[Int(offset)..<Int(offset) + buffer.count]))
        return buffer.count
      }.filter { hit in !notes.contains { $0.contains(hit.address) } }
    }
  }
}
