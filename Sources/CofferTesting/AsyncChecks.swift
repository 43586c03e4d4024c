internal import CofferCore

extension ConformanceCheck {
  static let asyncChecks: [ConformanceCheck] = [
    ConformanceCheck(name: "async-calls-agree") { context in
      let identifier = try context.identifier("async")
      try context.await {
        try await context.backend.store(SecretBytes(copying: "1"), for: identifier)
        let found = try await context.backend.lookUp(identifier).array()
        try context.expect(found, toBe: Array("1".utf8), "async lookUp, after an async store")
        let listed = try await context.backend.items(inService: context.service).map(\.identifier)
        try context.expect(listed, toBe: [identifier], "async items(inService:), after an async store")
        let item = try await context.backend.item(identifier)?.identifier
        try context.expect(item, toBe: identifier, "async item, after an async store")
      }
      try context.expectValue("1", identifier, "after an async store")
      try context.await {
        for expected in [true, false] {
          let isRemoved = try await context.backend.remove(identifier)
          try context.expect(isRemoved, toBe: expected, "async remove, called twice")
        }
        let found = try await context.backend.lookUp(identifier).array()
        try context.expect(found, toBe: nil, "async lookUp, after an async remove")
      }
    }
  ]
}
