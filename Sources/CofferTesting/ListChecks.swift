internal import CofferCore

extension ConformanceCheck {
  static let listChecks: [ConformanceCheck] = [
    ConformanceCheck(name: "list-of-a-service") { context in
      try context.expect(try context.listedAccounts().isEmpty, "a service without secrets lists some")
      for name in ["c", "a", "b"] { try context.store(name, context.identifier(name)) }
      // Services that begin with the same characters, and one that differs in case.
      try context.store("other", context.identifier("d", serviceSuffix: ".more"))
      try context.store("other", context.identifier("e", serviceSuffix: "/"))
      try context.expect(
        try context.listedAccounts() == [[97], [98], [99]],
        "the accounts of a service are not a, b and c, sorted"
      )
      try context.expect(
        try context.backend.items(inService: context.service.uppercased()).isEmpty,
        "a service's name in upper case lists secrets"
      )
    },

    ConformanceCheck(name: "list-of-everything") { context in
      let stored = [
        try context.identifier("a"), try context.identifier("b", serviceSuffix: ".2"),
        try context.identifier("c", serviceSuffix: ".3"),
      ]
      for identifier in stored { try context.store("x", identifier) }
      let listed = try context.backend.items(inService: nil).map(\.identifier)
      try context.expect(
        listed.filter { $0.service.utf8.starts(with: context.service.utf8) } == stored,
        "the list of everything does not have each secret of three services once"
      )
      try context.expect(listed == listed.sorted(), "the list of everything is not sorted")
    },

    ConformanceCheck(name: "list-is-sorted-by-bytes") { context in
      // In an order that neither locales, nor UTF-16, nor Swift's own comparison of strings give.
      let sorted = ["A", "Z", "a", "a\u{1}", "aa", "e\u{301}", "z", "\u{E9}", "\u{FF5E}", "\u{1F511}"]
      for name in sorted.reversed() { try context.store("x", context.identifier(name)) }
      try context.expect(
        try context.listedAccounts() == sorted.map { Array($0.utf8) },
        "the list is not sorted by UTF-8 bytes"
      )
    },

    ConformanceCheck(name: "item-agrees-with-list") { context in
      let identifier = try context.identifier("one")
      try context.expect(
        try context.backend.item(identifier) == nil,
        "item(_:) knows a secret that never was"
      )
      try context.store("1", identifier, context.sample)
      try context.store("2", context.identifier("another"))
      let item = try context.backend.item(identifier)
      let listed = try context.backend.items(inService: context.service).first { $0.identifier == identifier }
      try context.expect(item != nil && item == listed, "item(_:) and items(inService:) differ")
    },

    ConformanceCheck(name: "many-secrets") { context in
      let names = (0..<200).map { "secret \(String(1000 + $0))" }
      for name in names.reversed() { try context.store(name, context.identifier(name)) }
      try context.expect(
        try context.listedAccounts() == names.map { Array($0.utf8) },
        "200 secrets are not listed, each once"
      )
      for name in names { try context.expectValue(name, context.identifier(name), "among 200") }
    },
  ]

  static let errorChecks: [ConformanceCheck] = [
    ConformanceCheck(name: "no-secret-in-errors") { context in
      let canary = "canary-5up3r-s3cr3t-8d1f"
      let identifier = try context.identifier("canary")
      try context.store(canary, identifier)
      let store = { (secret: borrowing SecretBytes, metadata: SecretMetadata?) throws(SecretError) in
        try context.backend.store(secret, for: identifier, metadata: metadata)
      }
      let long = String(repeating: "x", count: 1025)
      for metadata in [SecretMetadata(label: long), SecretMetadata(attributes: ["x": long])] {
        try context.expectError(nil, from: "storing with metadata out of bounds", canary: canary) {
          () throws(SecretError) in try store(SecretBytes(copying: canary), metadata)
        }
      }
      if let cap = context.options.maximumSecretSize {
        let large = Array(canary.utf8) + [UInt8](repeating: 120, count: cap)
        try context.expectError(nil, from: "storing one that is too large", canary: canary) {
          () throws(SecretError) in try store(SecretBytes(copying: large), nil)
        }
      }
      if !context.options.omissions.contains(.transactions),
        let backend = context.backend as? any TransactionalSecretBackend
      {
        try context.expectError(nil, from: "storing inside the backend's own transaction", canary: canary) {
          () throws(SecretError) in
          try backend.transaction { transaction throws(SecretError) in
            try transaction.store(SecretBytes(copying: canary), for: identifier, metadata: nil)
            try store(SecretBytes(copying: canary), nil)
          }
        }
      }
      // Whatever may be listed or printed of the backend, the value is not in it.
      var dumped = ""
      dump(try context.backend.items(inService: context.service), to: &dumped)
      try context.expect(!dumped.contains(canary), "the list of names has the secret in it")
      try context.expect(
        !"\(context.backend)".contains(canary),
        "the backend's description has the secret in it"
      )
    }
  ]
}
