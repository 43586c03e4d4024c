internal import CofferCore

extension Check {
  static let overwriteChecks: [Check] = [
    Check(name: "overwrite-replaces") { context, _, a in
      for text in ["first", "a second, longer one", "3", "", "last"] {
        try context.store(text, a)
        try context.expectValue(text, a, "after an overwrite with \(text.utf8.count) bytes")
      }
    },

    Check(name: "overwrite-leaves-one") { context, _, a in
      try context.store(["first", "second", "third"], in: a)
      try context.expectListed(["a"], "after two overwrites")
      try context.expectRemoval(of: a, toReturn: true, "after two overwrites")
      try context.expectValue(nil, a, "after the removal of an overwritten secret")
    },

    Check(name: "remove-twice") { context, _, _ in
      let (identifier, other) = try context.identifiers("removed", "other")
      try context.store("1", identifier)
      try context.store("2", other)
      try context.expectRemoval(of: identifier, toReturn: true, "called once")
      try context.expectValue(nil, identifier, "after its removal")
      try context.expectRemoval(of: identifier, toReturn: false, "called twice")
      try context.expectValue("2", other, "after the removal of another secret")
      try context.expectListed(["other"], "after the removal of another secret")
      try context.expectRemoval(of: context.identifier("never"), toReturn: false, "of a secret that was never stored")
    },

    Check(name: "store-after-remove") { context, backend, a in
      try context.store("1", a)
      try backend.remove(a)
      try context.store("2", a)
      try context.expectValue("2", a, "after a removal and a store")
      try context.expectListed(["a"], "after a removal and a store")
    },
  ]
}
