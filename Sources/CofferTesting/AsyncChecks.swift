internal import CofferCore

extension ConformanceCheck {
  static let asyncChecks: [ConformanceCheck] = [
    ConformanceCheck(name: "async-calls-agree") { context in
      let identifier = try context.identifier("async")
      let (backend, service) = (context.backend, context.service)
      try context.await {
        try await backend.perform { try $0.store(SecretBytes("1"), for: identifier) }
        let found = try await backend.perform { try $0.lookUp(identifier)?.array() }
        try context.expect(found, toBe: Array("1".utf8), "lookUp in perform, after a store")
        let listed = try await backend.perform { try $0.items(inService: service).map(\.identifier) }
        try context.expect(listed, toBe: [identifier], "items(inService:) in perform, after a store")
      }
      try context.expectValue("1", identifier, "after a store in perform")
    }
  ]
}
