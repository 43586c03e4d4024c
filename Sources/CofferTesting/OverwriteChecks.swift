internal import CofferCore

extension ConformanceCheck {
  static let overwriteChecks: [ConformanceCheck] = [
    ConformanceCheck(name: "overwrite-replaces") { context in
      let identifier = try context.identifier("overwritten")
      for text in ["first", "a second, longer one", "3", "", "last"] {
        try context.store(text, identifier)
        try context.expectValue(text, identifier, "after overwriting with \(text.utf8.count) bytes")
      }
    },

    ConformanceCheck(name: "overwrite-leaves-one") { context in
      let identifier = try context.identifier("overwritten")
      for text in ["first", "second", "third"] { try context.store(text, identifier) }
      let count = try context.backend.items(inService: context.service).count
      try context.expect(count == 1, "a secret that was overwritten twice is listed \(count) times")
      try context.expect(try context.backend.remove(identifier), "removing it says there was none")
      try context.expectValue(nil, identifier, "after an overwritten secret was removed")
    },

    ConformanceCheck(name: "remove-twice") { context in
      let (identifier, other) = (try context.identifier("removed"), try context.identifier("other"))
      try context.store("1", identifier)
      try context.store("2", other)
      try context.expect(try context.backend.remove(identifier), "removing a secret says there was none")
      try context.expectValue(nil, identifier, "after it was removed")
      try context.expect(!(try context.backend.remove(identifier)), "removing it again says there was one")
      try context.expectValue("2", other, "after another secret was removed")
      try context.expect(try context.listedAccounts().count == 1, "a secret that was removed is listed")
      try context.expect(
        !(try context.backend.remove(context.identifier("never"))),
        "removing what never was says there was one"
      )
    },

    ConformanceCheck(name: "store-after-remove") { context in
      let identifier = try context.identifier("again")
      try context.store("1", identifier)
      try context.backend.remove(identifier)
      try context.store("2", identifier)
      try context.expectValue("2", identifier, "after it was removed and stored again")
      try context.expect(try context.listedAccounts().count == 1, "it is not listed once")
    },
  ]
}
