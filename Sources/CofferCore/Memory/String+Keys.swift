extension String {
  /// The text, in which each key (`coffer-key-v1:`) and identity (`AGE-SECRET-KEY-`) is cut off after its prefix, in
  /// upper or lower case. A message may repeat what a person typed, which may be a key.
  package var withoutKeys: String {
    func lowercase(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }
    func isOfKey(_ byte: UInt8) -> Bool { byte.isASCIILetterOrDigit || byte == 0x2D || byte == 0x5F }
    let prefixes = ["coffer-key-v1:", "age-secret-key-"].map { Array($0.utf8) }
    var (kept, rest, wasCut) = ([UInt8](), Array(utf8)[...], false)
    while let first = rest.first {
      let prefix = prefixes.first { prefix in
        lowercase(first) == prefix[0] && rest.prefix(prefix.count).map(lowercase) == prefix
      }
      // Only behind a prefix: a text may be long.
      let body = prefix.map { rest.dropFirst($0.count).prefix(while: isOfKey) }
      // A prefix with at most five characters after it is part of a description, not of a key.
      if let prefix, let body, body.count > 5 {
        kept += rest.prefix(prefix.count) + "…".utf8
        (rest, wasCut) = (rest[body.endIndex...], true)
      } else {
        kept.append(rest.removeFirst())
      }
    }
    return wasCut ? String(decoding: kept, as: UTF8.self) : self
  }
}
