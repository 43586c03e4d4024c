internal import CofferCore

extension Check {
  static let listChecks: [Check] = [
    Check(name: "list-of-a-service") { context, backend, _ in
      try context.expectListed([], "before any store")
      for name in ["c", "a", "b"] { try context.store(name, context.identifier(name)) }
      try context.store("other", context.identifier("d", serviceSuffix: ".more"))
      try context.store("other", context.identifier("e", serviceSuffix: "/"))
      try context.expectListed(["a", "b", "c"], "a service whose name is a prefix of two others")
      let upper = try backend.items(inService: context.service.uppercased()).map(\.identifier)
      try context.expect(upper, toBe: [], "the list of a service's name in upper case")
    },

    Check(name: "list-of-everything") { context, backend, _ in
      let stored = [
        try context.identifier("a"), try context.identifier("b", serviceSuffix: ".2"),
        try context.identifier("c", serviceSuffix: ".3"),
      ]
      for identifier in stored { try context.store("x", identifier) }
      let listed = try backend.items(inService: nil).map(\.identifier)
      try context.expect(
        listed.filter(context.isOwn), toBe: stored, "the secrets of three services in the list of all secrets"
      )
      try context.expect(
        listed == listed.sorted(), "the list of all secrets", expected: "a sorted list",
        found: "another order")
    },

    Check(name: "list-is-sorted-by-bytes") { context, _, _ in
      // The order differs from that of locales, of UTF-16 and of Swift strings.
      let sorted = ["A", "Z", "a", "a\u{1}", "aa", "e\u{301}", "z", "\u{E9}", "\u{FF5E}", "\u{1F511}"]
      for name in sorted.reversed() { try context.store("x", context.identifier(name)) }
      try context.expectListed(sorted, "accounts that sort by their UTF-8 bytes")
    },

    Check(name: "item-agrees-with-list") { context, backend, _ in
      let (identifier, other) = try context.identifiers("one", "another")
      try context.expect(try backend.item(identifier), toBe: nil, "item, before any store")
      try context.store("1", identifier, context.sample)
      try context.store("2", other)
      let item = try backend.item(identifier)
      let listed = try backend.items(inService: context.service).first { $0.identifier == identifier }
      try context.expect(
        item != nil && item == listed, "item, after a store", expected: "the same item as in the list",
        found: item == nil ? "none" : "another one")
    },

    Check(name: "each-secret-with-its-value") { context, backend, _ in
      for name in ["b", "a", "c"] { try context.store(name, context.identifier(name), context.sample) }
      try context.store("other", context.identifier("d", serviceSuffix: ".more"))
      let secrets = try backend.secrets(inService: context.service)
      try context.expect(
        secrets.map(\.identifier.account), toBe: ["a", "b", "c"], "the accounts of each secret of a service")
      for secret in secrets {
        try context.expect(
          secret.value.array(), toBe: Array(secret.identifier.account.utf8),
          "the value of one of three secrets")
        try context.expectMetadata(context.sample, in: secret.metadata, "one of three secrets")
      }
      let one = try backend.secret(context.identifier("a"))
      try context.expect(one?.value.array(), toBe: Array("a".utf8), "the value of a secret")
      try context.expect(one?.metadata, toBe: try context.metadata(context.identifier("a")), "the metadata of a secret")
      try context.expect(
        try backend.secret(context.identifier("absent")) == nil, toBe: true,
        "a secret that does not exist")
    },

    Check(name: "many-secrets") { context, _, _ in
      let names = (0..<200).map { "secret \(1000 + $0)" }
      for name in names.reversed() { try context.store(name, context.identifier(name)) }
      try context.expectListed(names, "after 200 stores")
      for name in names { try context.expectValue(name, context.identifier(name), "one of 200 secrets") }
    },
  ]

  static let errorChecks: [Check] = [
    Check(name: "no-secret-in-errors") { context, backend, a in
      let canary = "canary-5up3r-s3cr3t-8d1f"
      try context.store(canary, a)
      let long = String(repeating: "x", count: 1025)
      for metadata in [SecretMetadata(label: long), SecretMetadata(attributes: ["x": long])] {
        try context.expectError(nil, "a store with invalid metadata", canary: canary) {
          try context.store(canary, a, metadata)
        }
      }
      if let cap = context.options.maximumSecretSize {
        let large = Array(canary.utf8) + [UInt8](repeating: 120, count: cap)
        try context.expectError(nil, "a store of too many bytes", canary: canary) {
          try context.store(large, a)
        }
      }
      if backend.features.contains(.transactions) {
        try context.expectError(nil, "a store inside the backend's own transaction", canary: canary) {
          try backend.withTransaction { transaction throws(SecretError) in
            try transaction.store(canary, a)
            try backend.store(SecretBytes(canary), for: a)
          }
        }
      }
      var dumped = ""
      dump(try backend.items(inService: context.service), to: &dumped)
      for (text, situation) in [(dumped, "the list"), ("\(backend)", "the backend's description")] {
        try context.expect(
          !text.contains(canary), situation, expected: "text without the secret", found: "the secret in it")
      }
    }
  ]
}
