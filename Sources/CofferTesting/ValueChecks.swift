internal import CofferCore

extension Check {
  static let valueChecks: [Check] = [
    Check(name: "missing-is-nil") { context, _, _ in
      try context.expectValue(nil, context.identifier("missing"), "before any store")
    },

    Check(name: "empty-is-a-value") { context, _, _ in
      let empty = try context.identifier("empty")
      try context.store([], empty)
      try context.expectValue([], empty, "after a store of an empty secret")
      try context.expectListed(["empty"], "after a store of an empty secret")
      try context.store("text", empty)
      try context.store([], empty)
      try context.expectValue([], empty, "after an overwrite with an empty secret")
      try context.expectRemoval(of: empty, toReturn: true, "of an empty secret")
      try context.expectValue(nil, empty, "after the removal of an empty secret")
    },

    Check(name: "bytes-are-exact") { context, _, _ in
      let allBytes = Array(UInt8.min...UInt8.max)
      let values: [(String, [UInt8])] = [
        ("NUL", [0]), ("NULs", [0, 0, 0]), ("NUL inside", [65, 0, 66]), ("NUL at the end", [65, 66, 0]),
        ("NUL at the start", [0, 65, 66]), ("LF", [10]), ("LF at the end", [65, 10]),
        ("two LFs at the end", [65, 10, 10]), ("LF at the start", [10, 65]), ("LF inside", [65, 10, 66]),
        ("CRLF", [65, 13, 10, 66, 13, 10]), ("CR", [13]), ("spaces at both ends", [32, 65, 32]), ("tab", [9]),
        ("invalid UTF-8", [0xFF, 0xFE, 0xC0, 0x80]), ("truncated UTF-8", [0xC3]),
        ("byte order mark", [0xEF, 0xBB, 0xBF, 65]), ("every byte", allBytes),
        ("every byte, descending", allBytes.reversed()),
      ]
      for (name, bytes) in values {
        let identifier = try context.identifier(name)
        try context.store(bytes, identifier)
        try context.expectValue(bytes, identifier, "after a store of “\(name)”")
      }
      for (name, bytes) in values {
        try context.expectValue(bytes, context.identifier(name), "“\(name)”, after further stores")
      }
    },

    Check(name: "text-is-not-normalised") { context, _, _ in
      // Canonically equivalent texts with different bytes.
      for (name, text) in [("composed", "caf\u{E9}"), ("decomposed", "cafe\u{301}")] {
        let identifier = try context.identifier(name)
        try context.store(text, identifier)
        try context.expectValue(text, identifier, "after a store of \(name) text")
      }
    },

    Check(name: "every-size-up-to-the-cap") { context, _, a in
      let cap = min(context.options.maximumSecretSize ?? .max, context.options.largestTriedSize)
      var sizes = [1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 257, 1023, 1024, 1025]
      for size in [4096, 16_384, 65_536, 262_144, 1 << 20] { sizes += [size - 1, size, size + 1] }
      sizes = sizes.filter { $0 < cap } + [cap - 1, cap]
      let largest = pattern(cap)
      for size in sizes {
        let bytes = Array(largest.prefix(size))
        try context.store(bytes, a)
        try context.expectValue(bytes, a, "after a store of \(size) bytes")
      }
    },

    Check(name: "over-the-cap-is-too-large") { context, _, _ in
      guard let cap = context.options.maximumSecretSize else { return }
      let (new, existing) = try context.identifiers("new", "existing")
      let tooLarge = pattern(cap + 1)
      try context.store("before", existing)
      for identifier in [new, existing] {
        try context.expectError([.tooLarge], "a store of one byte more than the maximum") {
          try context.store(tooLarge, identifier)
        }
      }
      try context.expectValue("before", existing, "after an overwrite with too many bytes")
      try context.expectValue(nil, new, "after a store of too many bytes")
      try context.expectListed(["existing"], "after a store of too many bytes")
    },
  ]
}
