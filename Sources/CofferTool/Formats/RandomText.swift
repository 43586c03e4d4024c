internal import Coffer
internal import CofferCore
internal import CofferSystem

/// Random text in guarded memory, each of whose parts is chosen with the same probability.
enum RandomText {
  static func characters(_ count: Int, of characters: [UInt8]) -> SecretBytes {
    SecretBytes(count: count) { text in
      for index in text.indices { text[index] = characters[SecureRandom.number(below: characters.count)] }
    }
  }

  static func words(_ count: Int, of words: [[UInt8]], separator: [UInt8]) -> SecretBytes {
    let longest = words.lazy.map(\.count).max() ?? 0
    var length = 0
    let text = SecretBytes(count: count * (longest + separator.count)) { text in
      for number in 0..<count {
        for byte in (number == 0 ? [] : separator) + words[SecureRandom.number(below: words.count)] {
          text[length] = byte
          length += 1
        }
      }
    }
    return text.prefix(length)
  }
}
