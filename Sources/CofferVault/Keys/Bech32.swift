internal import CofferCore

/// The text form of recipients and identities: Bech32 (BIP 173) without its length limit.
enum Bech32 {
  private static let small = Array("qpzry9x8gf2tvdw0s3jn54khce6mua7l".utf8)
  private static let capital = Array("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L".utf8)
  private static let checksumLength = 6

  /// The characters of a text with `prefix`: capitals if `prefix` is in capitals, small letters otherwise.
  private static func alphabet(_ prefix: String) -> [UInt8] { prefix.utf8.contains(0x41) ? capital : small }

  /// The number of five-bit digits of `count` bytes.
  private static func digits(_ count: Int) -> Int { (count * 8 + 4) / 5 }

  /// Returns the text of `data`.
  static func encode(_ data: Span<UInt8>, prefix: String) -> SecretBytes {
    defer { Residue.clear() }
    let count = digits(data.count)
    let values = SecretBytes(count: count + checksumLength) { output in
      for bit in 0..<data.count * 8 where data[bit / 8] >> UInt8(7 - bit % 8) & 1 == 1 {
        output[bit / 5] |= 1 << UInt8(4 - bit % 5)
      }
      let check = checksum(prefix, UnsafeRawBufferPointer(output)) ^ 1
      for index in 0..<checksumLength {
        output[count + index] = UInt8(check >> UInt32(5 * (checksumLength - 1 - index)) & 31)
      }
    }
    let (start, alphabet) = (prefix + "1", alphabet(prefix))
    return values.withBytes { values in
      SecretBytes(count: start.utf8.count + values.count) { output in
        output.copyBytes(from: start.utf8)
        for index in values.indices { output[start.utf8.count + index] = alphabet[Int(values[index])] }
      }
    }
  }

  /// Decodes `text`, which must be the text of `count` bytes. Returns `nil` if it is malformed or mistyped.
  static func decode(_ text: Span<UInt8>, prefix: String, count: Int) -> SecretBytes? {
    defer { Residue.clear() }
    let (start, digits, alphabet) = (prefix.utf8.count + 1, digits(count), alphabet(prefix))
    guard text.count == start + digits + checksumLength,
      text.withUnsafeBytes({ $0.starts(with: (prefix + "1").utf8) })
    else { return nil }
    var isKnown = true
    let values = SecretBytes(count: text.count - start) { output in
      for index in output.indices {
        let value = alphabet.firstIndex(of: text[start + index])
        isKnown = isKnown && value != nil
        output[index] = UInt8(value ?? 0)
      }
    }
    let spare = UInt8(digits * 5 - count * 8)
    guard isKnown, values.withUnsafeBytes({ checksum(prefix, $0) }) == 1,
      values.withBytes({ $0[digits - 1] & (1 << spare - 1) }) == 0
    else { return nil }
    return values.withBytes { values in
      SecretBytes(count: count) { output in
        for bit in 0..<count * 8 {
          output[bit / 8] |= (values[bit / 5] >> UInt8(4 - bit % 5) & 1) << UInt8(7 - bit % 8)
        }
      }
    }
  }

  /// The checksum of BIP 173 over the prefix in small letters, and values of five bits.
  private static func checksum(_ prefix: String, _ values: UnsafeRawBufferPointer) -> UInt32 {
    var check: UInt32 = 1
    func add(_ value: UInt8) {
      let top = check >> 25
      check = (check & 0x1FF_FFFF) << 5 ^ UInt32(value)
      for (bit, generator) in [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3 as UInt32]
        .enumerated()
      where top >> UInt32(bit) & 1 == 1 {
        check ^= generator
      }
    }
    let prefix = prefix.utf8.map { $0 | 0x20 }
    for byte in prefix { add(byte >> 5) }
    add(0)
    for byte in prefix { add(byte & 31) }
    for value in values { add(value) }
    return check
  }
}
