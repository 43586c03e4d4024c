internal import CofferCore

extension ConformanceCheck {
  static let valueChecks: [ConformanceCheck] = [
    ConformanceCheck(name: "missing-is-nil") { context in
      try context.expectValue(nil, context.identifier("nobody"), "before anything was stored")
    },

    ConformanceCheck(name: "empty-is-a-value") { context in
      let empty = try context.identifier("empty")
      try context.store([UInt8](), empty)
      try context.expectValue([], empty, "after an empty secret was stored")
      try context.expect(try context.listedAccounts().count == 1, "an empty secret is not listed")
      try context.store("text", empty)
      try context.store([UInt8](), empty)
      try context.expectValue([], empty, "after a secret was overwritten with an empty one")
      try context.expect(try context.backend.remove(empty), "removing an empty secret says there was none")
      try context.expectValue(nil, empty, "after an empty secret was removed")
    },

    ConformanceCheck(name: "bytes-are-exact") { context in
      let allBytes = Array(UInt8.min...UInt8.max)
      let values: [(String, [UInt8])] = [
        ("NUL", [0]), ("NULs", [0, 0, 0]), ("NUL inside", [65, 0, 66]), ("NUL at the end", [65, 66, 0]),
        ("NUL at the start", [0, 65, 66]), ("LF", [10]), ("trailing LF", [65, 10]),
        ("two trailing LFs", [65, 10, 10]), ("leading LF", [10, 65]), ("LF inside", [65, 10, 66]),
        ("CRLF", [65, 13, 10, 66, 13, 10]), ("CR", [13]), ("spaces around", [32, 65, 32]), ("tab", [9]),
        ("not UTF-8", [0xFF, 0xFE, 0xC0, 0x80]), ("half a character", [0xC3]),
        ("byte order mark", [0xEF, 0xBB, 0xBF, 65]), ("every byte", allBytes),
        ("every byte, backwards", allBytes.reversed()),
      ]
      for (name, bytes) in values {
        let identifier = try context.identifier(name)
        try context.store(bytes, identifier)
        try context.expectValue(bytes, identifier, "after storing “\(name)”")
      }
      for (name, bytes) in values {
        try context.expectValue(bytes, context.identifier(name), "“\(name)”, after the others were stored")
      }
    },

    ConformanceCheck(name: "text-is-not-normalised") { context in
      // The same text to a reader, in two spellings: composed and decomposed.
      for (name, text) in [("composed", "caf\u{E9}"), ("decomposed", "cafe\u{301}")] {
        let identifier = try context.identifier(name)
        try context.store(text, identifier)
        try context.expectValue(text, identifier, "after storing \(name) text")
      }
    },

    ConformanceCheck(name: "every-size-up-to-the-cap") { context in
      let cap = min(context.options.maximumSecretSize ?? .max, context.options.largestTriedSize)
      var sizes = [1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 257, 1023, 1024, 1025]
      for size in [4096, 16_384, 65_536, 262_144, 1 << 20] { sizes += [size - 1, size, size + 1] }
      sizes = sizes.filter { $0 < cap } + [cap - 1, cap]
      let identifier = try context.identifier("sized")
      for size in sizes {
        let bytes = pattern(size)
        try context.store(bytes, identifier)
        try context.expectValue(bytes, identifier, "after storing \(size) bytes")
      }
    },

    ConformanceCheck(name: "over-the-cap-is-too-large") { context in
      guard let cap = context.options.maximumSecretSize else { return }
      let (fresh, existing) = (try context.identifier("fresh"), try context.identifier("existing"))
      try context.store("before", existing)
      for identifier in [fresh, existing] {
        try context.expectError([.tooLarge], from: "storing one byte more than the cap") {
          () throws(SecretError) in
          try context.backend.store(SecretBytes(copying: pattern(cap + 1)), for: identifier, metadata: nil)
        }
      }
      try context.expectValue(nil, fresh, "after a secret above the cap was refused")
      try context.expectValue("before", existing, "after a secret above the cap was refused")
      try context.expect(try context.listedAccounts().count == 1, "a secret that was refused is listed")
    },
  ]

  /// Bytes without a short period, so that a part that is lost, doubled or moved is seen.
  static func pattern(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
    var state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
    return [UInt8](unsafeUninitializedCapacity: count) { buffer, initialised in
      for index in 0..<count {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        buffer.initializeElement(at: index, to: UInt8(truncatingIfNeeded: state))
      }
      initialised = count
    }
  }
}
