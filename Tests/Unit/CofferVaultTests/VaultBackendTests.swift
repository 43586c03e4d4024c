import CofferVault
import CofferCore
import CofferTestSupport
import Testing

@Suite struct VaultBackendTests {
  @Test func aValueSurvivesReopening() throws {
    let vault = try TestVault()
    try vault.open().set("token", Array("hunter2".utf8))
    #expect(try vault.open().get("token") == Array("hunter2".utf8))
    #expect(try vault.open().get("other") == nil)
    #expect(try vault.open().verify().secretCount == 1)
  }

  @Test func manyValuesSurviveCompactionAndReopening() throws {
    let vault = try TestVault()
    let backend = vault.open()
    try backend.transaction { transaction throws(SecretError) in
      for index in 0..<3000 {
        try transaction.store(
          SecretBytes(copying: "value \(index)"),
          for: SecretIdentifier(service: "s", account: "\(index)"),
          metadata: nil
        )
      }
    }
    try backend.set("one more", [1])
    #expect(try backend.items(inService: "s").count == 3000)
    let again = vault.open()
    #expect(try again.lookUp(SecretIdentifier(service: "s", account: "1234"))?.string() == "value 1234")
    try again.compact()
    #expect(try backend.lookUp(SecretIdentifier(service: "s", account: "77"))?.string() == "value 77")
    #expect(try backend.verify().secretCount == 3001)
  }
}
