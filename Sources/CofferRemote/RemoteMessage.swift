/// One message between a program and a helper: a line of words, and pieces of bytes. The page `RemoteProtocol`
/// specifies the messages.
public struct RemoteMessage: Equatable, Sendable {
  /// Bytes, and their offset in an object.
  public struct Piece: Equatable, Sendable {
    public var offset: Int
    public var bytes: [UInt8]

    public init(offset: Int = 0, _ bytes: [UInt8]) { (self.offset, self.bytes) = (offset, bytes) }
  }

  package var words: [String]
  package var pieces: [Piece]

  /// The longest line, with its line feed: 1 KiB.
  package static let maximumLine = 1024
  /// The most bytes of all pieces of a message together: 8 MiB, which is also the largest object.
  public static let maximumBytes = 8 << 20

  package init(_ words: [String], _ pieces: [Piece] = []) { (self.words, self.pieces) = (words, pieces) }

  /// Parses a line without its line feed. The pieces get their lengths and are filled with zeros until their bytes are
  /// read. Returns `nil` if the line is malformed.
  init?(line: [UInt8]) {
    guard line.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }), line.count < Self.maximumLine else { return nil }
    let all = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
    let lengths = all.drop { $0.first != UInt8(ascii: "@") }
    self.init(all.dropLast(lengths.count).map { String(decoding: $0, as: UTF8.self) })
    var total = 0
    for length in lengths {
      let numbers = length.dropFirst().split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
      let values = numbers.map { Self.number($0) }
      guard length.first == UInt8(ascii: "@"), values.count == 2, let offset = values[0], let count = values[1]
      else { return nil }
      total += count
      guard total <= Self.maximumBytes else { return nil }
      pieces.append(Piece(offset: offset, [UInt8](repeating: 0, count: count)))
    }
    guard !words.isEmpty, words.allSatisfy({ !$0.isEmpty }) else { return nil }
  }

  /// The value of up to nine decimal digits.
  private static func number(_ digits: ArraySlice<UInt8>) -> Int? {
    guard (1...9).contains(digits.count), digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return digits.reduce(0) { $0 * 10 + Int($1) - 0x30 }
  }

  /// The bytes of the message.
  package var serialized: [UInt8] {
    let line = words + pieces.map { "@\($0.offset):\($0.bytes.count)" }
    return pieces.reduce(into: Array((line.joined(separator: " ") + "\n").utf8)) { $0 += $1.bytes }
  }
}

extension [UInt8] {
  /// The bytes after `pieces` were written over them and behind them, in their order, or `nil` if that would leave a
  /// gap.
  public func written(_ pieces: [RemoteMessage.Piece]) -> [UInt8]? {
    var bytes = self
    for piece in pieces {
      guard piece.offset <= bytes.count else { return nil }
      let end = Swift.min(piece.offset + piece.bytes.count, bytes.count)
      bytes.replaceSubrange(piece.offset..<end, with: piece.bytes)
    }
    return bytes
  }
}
