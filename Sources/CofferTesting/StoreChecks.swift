internal import CofferCore

/// Leases, moves, and the store as a whole.
extension Check {
  static let storeChecks: [Check] = [
    Check(name: "a-lease-excludes-others-until-its-release", features: .leases) { context, backend, a in
      let other = try context.identifier("other")
      func expectLease(of identifier: SecretIdentifier, _ isFree: Bool, _ situation: String) throws -> SecretLease? {
        let lease = try backend.tryLease(identifier)
        try context.expect(lease != nil, toBe: isFree, "a lease \(situation)")
        return lease
      }
      let lease = try expectLease(of: a, true, "of a secret that does not exist")
      _ = try expectLease(of: a, false, "while it is taken")
      let second = try expectLease(of: other, true, "of another secret")
      lease?.release()
      try expectLease(of: a, true, "after its release")?.release()
      second?.release()
    },

    Check(name: "move") { context, backend, a in
      let (b, never) = try context.identifiers("b", "never")
      try context.store("1", a, context.sample)
      try backend.move(a, to: b, replacing: false)
      try context.expectValue("1", b, "after move, under the new name")
      try context.expectMetadata(context.sample, b, "after move, under the new name")
      try context.expectValue(nil as [UInt8]?, a, "after move, under the old name")
      try context.store("2", a)
      try context.expectError([.alreadyExists], "move to a name that is taken") {
        try backend.move(a, to: b, replacing: false)
      }
      try context.expectValue("1", b, "after move to a name that is taken")
      try context.expectError([.missing], "move of a missing secret") {
        try backend.move(never, to: a, replacing: true)
      }
      try context.expectValue("2", a, "after move of a missing secret")
      try backend.move(a, to: b, replacing: true)
      try context.expectValue("2", b, "after move that replaces")
      try context.expectListed(["b"], "after move that replaces")
    },

    Check(name: "without-prompts-after-close-and-unlock-the-store-is-the-same") { context, backend, a in
      try context.store("1", a)
      let value = try backend.withoutPrompts.lookUp(a)?.array()
      try context.expect(value, toBe: Array("1".utf8), "a look-up without prompts")
      for _ in 0..<2 {
        try backend.close()
        try context.expectValue("1", a, "after close")
      }
      try backend.unlock()
      try context.expectListed(["a"], "after unlock")
    },
  ]
}
