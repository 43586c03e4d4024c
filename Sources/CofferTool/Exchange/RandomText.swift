internal import Coffer
internal import CofferCore

/// Random text in guarded memory, each of whose parts is chosen with the same probability.
enum RandomText {
  static func characters(_ count: Int, of characters: [UInt8]) -> SecretBytes {
    SecretWriter.bytes(capacity: count) { writer in
      for _ in 0..<count { writer.append(characters[SecureRandom.number(below: characters.count)]) }
    }
  }

  static func words(_ count: Int, of words: [[UInt8]], separator: [UInt8]) -> SecretBytes {
    let longest = words.lazy.map(\.count).max() ?? 0
    return SecretWriter.bytes(capacity: count * (longest + separator.count)) { writer in
      for number in 0..<count {
        if number > 0 { writer.append(separator.span) }
        let word = words[SecureRandom.number(below: words.count)]
        writer.append(word.span)
      }
    }
  }
}
