internal import CofferCore

extension Check {
  static let identifierChecks: [Check] = [
    Check(name: "names-are-verbatim") { context, backend, _ in
      let names = [
        "a/b", "/a", "a/", "a//b", "../a", ".", "..", "a%2Fb", "%", "%00", "a b", " a", "a ", "a\nb", "a\n",
        "\n", "a\tb", "a\\b", "\"a\"", "'a'", "a=b", "a;b", "a:b", "a@b.example", "*", "?", "[a]", "{a}",
        "$HOME", "~", "-", "--help", "#", "\u{1}", "\u{7F}", "A", "a", "Ä", "ä", "пароль", "密码", "كلمة",
        "🔑", "👩‍👩‍👧‍👦", "\u{FEFF}a", "\u{200B}", "\u{202E}a", "null", "0", "secret://a/b",
      ]
      for (index, name) in names.enumerated() {
        try context.store("value \(index)", context.identifier(name))
      }
      for (index, name) in names.enumerated() {
        try context.expectValue("value \(index)", context.identifier(name), "the account number \(index)")
      }
      let sorted = names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
      try context.expectListed(sorted, "after stores with special characters in accounts")
      for (index, name) in names.enumerated() {
        try context.store("service \(index)", context.identifier("account", serviceSuffix: "." + name))
      }
      for (index, name) in names.enumerated() {
        let identifier = try context.identifier("account", serviceSuffix: "." + name)
        try context.expectValue("service \(index)", identifier, "the service number \(index)")
        let listed = try backend.items(inService: identifier.service).map(\.identifier)
        try context.expect(listed, toBe: [identifier], "the list of the service number \(index)")
      }
    },

    Check(name: "composed-and-decomposed-names-differ") { context, backend, _ in
      let (composed, decomposed) = ("caf\u{E9}", "cafe\u{301}")
      try context.store("1", context.identifier(composed))
      try context.expectValue(nil, context.identifier(decomposed), "a canonically equivalent account")
      try context.store("2", context.identifier(decomposed))
      try context.expectValue("1", context.identifier(composed), "the composed account")
      try context.expectValue("2", context.identifier(decomposed), "the decomposed account")
      try context.expectListed([decomposed, composed], "two canonically equivalent accounts")
      try context.store("3", context.identifier("x", serviceSuffix: composed))
      try context.store("4", context.identifier("x", serviceSuffix: decomposed))
      try context.expectValue("3", context.identifier("x", serviceSuffix: composed), "the composed service")
      try context.expectListed(["x"], "one of two canonically equivalent services", serviceSuffix: composed)
      try backend.remove(context.identifier(decomposed))
      try context.expectValue(
        "1", context.identifier(composed), "after the removal of a canonically equivalent account")
    },

    Check(name: "service-and-account-are-separate") { context, _, _ in
      let identifiers = try [
        ("/b", "c"), ("", "b/c"), ("/b/c", "d"), (".b", "c"), ("", "b.c"), ("b", "c"), ("bc", "c"),
      ].map { try context.identifier($1, serviceSuffix: $0) }
      for (index, identifier) in identifiers.enumerated() { try context.store("\(index)", identifier) }
      for (index, identifier) in identifiers.enumerated() {
        try context.expectValue("\(index)", identifier, "the pair number \(index) of a service and an account")
      }
    },

    Check(name: "longest-names") { context, backend, _ in
      let limit = context.options.maximumNameLength
      let suffix = String(repeating: "s", count: max(0, limit - context.service.utf8.count))
      // Two accounts that differ in the last byte only, and one of multi-byte characters.
      let stem = String(repeating: "a", count: limit - 1)
      let accounts = [stem + "1", stem + "2", String(repeating: "é", count: limit / 2)]
      for account in accounts {
        try context.store(account, context.identifier(account, serviceSuffix: suffix))
      }
      for (index, account) in accounts.enumerated() {
        let identifier = try context.identifier(account, serviceSuffix: suffix)
        try context.expectValue(account, identifier, "the account number \(index) of \(limit) bytes")
      }
      try context.expect(
        try backend.items(inService: context.service + suffix).count, toBe: accounts.count,
        "the size of the list of accounts of \(limit) bytes")
    },
  ]
}
