internal import CofferCore

extension ConformanceCheck {
  static let identifierChecks: [ConformanceCheck] = [
    ConformanceCheck(name: "names-are-verbatim") { context in
      let names = [
        "a/b", "/a", "a/", "a//b", "../a", ".", "..", "a%2Fb", "%", "%00", "a b", " a", "a ", "a\nb", "a\n",
        "\n",
        "a\tb", "a\\b", "\"a\"", "'a'", "a=b", "a;b", "a:b", "a@b.example", "*", "?", "[a]", "{a}", "$HOME",
        "~", "-", "--help", "#", "\u{1}", "\u{7F}", "A", "a", "Ä", "ä", "пароль", "密码", "كلمة", "🔑", "👩‍👩‍👧‍👦",
        "\u{FEFF}a", "\u{200B}", "\u{202E}a", "null", "0", "secret://a/b",
      ]
      for (index, name) in names.enumerated() {
        try context.store("value \(index)", context.identifier(name))
      }
      for (index, name) in names.enumerated() {
        try context.expectValue("value \(index)", context.identifier(name), "the account number \(index)")
      }
      try context.expect(
        Set(try context.listedAccounts()) == Set(names.map { Array($0.utf8) }),
        "the accounts that are listed are not the ones that were stored, byte by byte"
      )
      for (index, name) in names.enumerated() {
        let suffix = "." + name
        try context.store("service \(index)", context.identifier("account", serviceSuffix: suffix))
      }
      for (index, name) in names.enumerated() {
        let identifier = try context.identifier("account", serviceSuffix: "." + name)
        try context.expectValue("service \(index)", identifier, "the service number \(index)")
        let listed = try context.backend.items(inService: identifier.service)
        try context.expect(
          listed.map(\.identifier) == [identifier],
          "the service number \(index) is not listed, alone and exactly"
        )
      }
    },

    ConformanceCheck(name: "composed-and-decomposed-names-differ") { context in
      let composed = "caf\u{E9}"
      let decomposed = "cafe\u{301}"
      try context.store("1", context.identifier(composed))
      try context.expectValue(nil, context.identifier(decomposed), "under the other spelling of the account")
      try context.store("2", context.identifier(decomposed))
      try context.expectValue("1", context.identifier(composed), "under the composed account")
      try context.expectValue("2", context.identifier(decomposed), "under the decomposed account")
      try context.expect(
        Set(try context.listedAccounts()) == [Array(composed.utf8), Array(decomposed.utf8)],
        "the two spellings of an account are not both listed"
      )
      try context.store("3", context.identifier("x", serviceSuffix: composed))
      try context.store("4", context.identifier("x", serviceSuffix: decomposed))
      try context.expectValue(
        "3",
        context.identifier("x", serviceSuffix: composed),
        "under the composed service"
      )
      try context.expect(
        try context.listedAccounts(serviceSuffix: composed).count == 1,
        "listing one spelling of a service gives the other's secrets"
      )
      try context.backend.remove(context.identifier(decomposed))
      try context.expectValue("1", context.identifier(composed), "after the other spelling was removed")
    },

    ConformanceCheck(name: "service-and-account-are-apart") { context in
      let pairs = [
        ("/b", "c"), ("", "b/c"), ("/b/c", "d"), (".b", "c"), ("", "b.c"), ("b", "c"), ("bc", "c"),
      ]
      for (index, pair) in pairs.enumerated() {
        try context.store("\(index)", context.identifier(pair.1, serviceSuffix: pair.0))
      }
      for (index, pair) in pairs.enumerated() {
        try context.expectValue(
          "\(index)",
          context.identifier(pair.1, serviceSuffix: pair.0),
          "the pair number \(index)"
        )
      }
    },

    ConformanceCheck(name: "longest-names") { context in
      let limit = context.options.longestName
      let service =
        context.service + String(repeating: "s", count: max(0, limit - context.service.utf8.count))
      // Two that differ in their last byte only, and one of multi-byte characters.
      let stem = String(repeating: "a", count: limit - 1)
      let accounts = [stem + "1", stem + "2", String(repeating: "é", count: limit / 2)]
      for account in accounts {
        let identifier = try SecretIdentifier(service: service, account: account)
        try context.store(account, identifier)
      }
      for (index, account) in accounts.enumerated() {
        try context.expectValue(
          account,
          SecretIdentifier(service: service, account: account),
          "the longest account number \(index)"
        )
      }
      try context.expect(
        try context.backend.items(inService: service).count == accounts.count,
        "the longest names are not listed"
      )
    },
  ]
}
