import CofferCore
import CofferSimulation
import CofferTestSupport
import CofferVault
import CofferVaultFormat
import Testing

/// Vaults with so many blocks that their index has two levels.
@Suite struct IndexTests {
  @Test(.long) func aLargeVaultHasAnIndexOfTwoLevels() throws {
    let disk = try SimulatedDisk.withVault()
    // Each record fills a block.
    let text = String(repeating: "v", count: 1024)
    let attributes = Dictionary(uniqueKeysWithValues: (0..<16).map { ("\($0)", text) })
    let count = Layout.nodeTarget + 10
    try disk.openVault().withTransaction { transaction throws(SecretError) in
      for number in 0..<count {
        try transaction.store(
          SecretBytes("\(number)"), for: SecretIdentifier(service: "tests", account: "\(number)"),
          metadata: SecretMetadata(attributes: attributes))
      }
    }
    func nodes() throws -> Int { try VaultAnatomy(#require(disk.content(of: "vault"))).nodes.count }
    #expect(try nodes() == 2)
    let backend = disk.openVault()
    for number in stride(from: 0, to: count, by: 5) { #expect(try backend.text("\(number)") == "\(number)") }
    #expect(try backend.get("none") == nil)
    #expect(try backend.items(inService: "tests").count == count && backend.verify().secretCount == count)
    // A rewrite copies the base, and goes back to one level if that is enough.
    try backend.set("5", [1])
    try backend.rekey()
    #expect(try nodes() == 2)
    #expect(try backend.get("5") == [1] && backend.verify().earlierVersionCount == 1)
    try backend.withTransaction { transaction in
      for number in 0..<11 {
        let isErased = try transaction.erase(identifier("\(number)"))
        #expect(isErased)
      }
    }
    #expect(try nodes() == 0)
    #expect(try backend.verify().secretCount == count - 11 && backend.text("20") == "20")
  }
}
