internal import CofferCore

extension ConformanceCheck {
  static let overwriteChecks: [ConformanceCheck] = [
    ConformanceCheck(name: "overwrite-replaces") { context in
      let identifier = try context.identifier("overwritten")
      for text in ["first", "a second, longer one", "3", "", "last"] {
        try context.store(text, identifier)
        try context.expectValue(text, identifier, "after an overwrite with \(text.utf8.count) bytes")
      }
    },

    ConformanceCheck(name: "overwrite-leaves-one") { context in
      let identifier = try context.identifier("overwritten")
      try context.store(["first", "second", "third"], in: identifier)
      try context.expectListed(["overwritten"], "after two overwrites")
      try context.expectRemoval(of: identifier, toReturn: true, "after two overwrites")
      try context.expectValue(nil, identifier, "after the removal of an overwritten secret")
    },

    ConformanceCheck(name: "remove-twice") { context in
      let (identifier, other) = try context.identifiers("removed", "other")
      try context.store("1", identifier)
      try context.store("2", other)
      try context.expectRemoval(of: identifier, toReturn: true, "called once")
      try context.expectValue(nil, identifier, "after its removal")
      try context.expectRemoval(of: identifier, toReturn: false, "called twice")
      try context.expectValue("2", other, "after the removal of another secret")
      try context.expectListed(["other"], "after the removal of another secret")
      try context.expectRemoval(
        of: context.identifier("never"), toReturn: false, "of a secret that was never stored")
    },

    ConformanceCheck(name: "store-after-remove") { context in
      let identifier = try context.identifier("again")
      try context.store("1", identifier)
      try context.backend.remove(identifier)
      try context.store("2", identifier)
      try context.expectValue("2", identifier, "after a removal and a store")
      try context.expectListed(["again"], "after a removal and a store")
    },
  ]
}
