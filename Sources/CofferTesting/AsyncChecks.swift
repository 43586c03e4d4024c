internal import CofferCore

extension Check {
  static let asyncChecks: [Check] = [
    Check(name: "async-calls-agree") { context, backend, a in
      try context.await {
        try await backend.perform { try $0.store(SecretBytes("1"), for: a) }
        let found = try await backend.perform { try $0.lookUp(a)?.array() }
        try context.expect(found, toBe: Array("1".utf8), "lookUp in perform, after a store")
        let listed = try await backend.perform { try $0.items(inService: context.service).map(\.identifier) }
        try context.expect(listed, toBe: [a], "items(inService:) in perform, after a store")
      }
      try context.expectValue("1", a, "after a store in perform")
    }
  ]
}
