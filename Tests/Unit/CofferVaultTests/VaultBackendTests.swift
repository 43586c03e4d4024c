import CofferVault
import CofferCore
import CofferTestSupport
import Foundation
import Testing

@Suite struct VaultBackendTests {
  @Test func aTransactionListsWhatItWillLeave() throws {
    let vault = try TestVault()
    let backend = vault.open()
    for name in ["b", "c", "d"] { try backend.set(name, [1]) }
    try backend.set("other", [1], service: "elsewhere")
    func names(_ transaction: any SecretTransaction, _ service: String?) throws(SecretError) -> [String] {
      try transaction.items(inService: service).map(\.identifier.account)
    }
    try backend.withTransaction { transaction throws(SecretError) in
      #expect(try names(transaction, "tests") == ["b", "c", "d"])
      for name in ["e", "a", "d"] {
        try transaction.store(SecretBytes([2] as [UInt8]), for: identifier(name))
      }
      _ = try transaction.remove(identifier("c"))
      #expect(try names(transaction, "tests") == ["a", "b", "d", "e"])
      #expect(try names(transaction, "elsewhere") == ["other"])
      #expect(try names(transaction, nil) == ["other", "a", "b", "d", "e"])
    }
  }

  @Test func theSecretsOfAServiceHaveTheirValues() throws {
    let vault = try TestVault()
    let backend = vault.open()
    for name in ["a", "b"] { try backend.set(name, Array(name.utf8)) }
    try backend.set("c", [1], service: "elsewhere")
    let secrets = try backend.secrets(inService: "tests")
    #expect(try secrets.map(\.identifier) == [identifier("a"), identifier("b")])
    #expect(secrets.map { $0.value.array() } == [Array("a".utf8), Array("b".utf8)])
  }

  @Test func theSecretsOfAServiceSayWhichValueIsNotAuthentic() throws {
    let vault = try TestVault()
    try vault.open().set("a", Array(repeating: 1, count: 1000))
    let bytes = try vault.bytes
    // The value is the largest part of the file, so at least one of these bytes belongs to it.
    let errors: [SecretError] = try stride(from: bytes.count / 8, to: bytes.count, by: 400).compactMap {
      place in
      var changed = bytes
      changed[place] ^= 1
      try Data(changed).write(to: URL(filePath: vault.path))
      return thrown { () throws(SecretError) in _ = try vault.open().secrets(inService: "tests") }
    }
    #expect(errors.contains { $0.code == .tampered && $0.identifier?.account == "a" })
  }

  @Test func aTransactionIsOfNoUseAfterItsEnd() throws {
    let vault = try TestVault()
    let backend = vault.open()
    try backend.set("a", [1])
    var kept: (any SecretTransaction)?
    try backend.withTransaction { kept = $0 }
    let transaction = try #require(kept)
    func isRefused(_ body: () throws(SecretError) -> Void) -> Bool { thrown(body)?.code == .conflict }
    let identifier = try identifier("a")
    #expect(isRefused { () throws(SecretError) in _ = try transaction.lookUp(identifier) })
    #expect(isRefused { () throws(SecretError) in _ = try transaction.item(identifier) })
    #expect(isRefused { () throws(SecretError) in _ = try transaction.items(inService: nil) })
    #expect(isRefused { () throws(SecretError) in _ = try transaction.remove(identifier) })
    #expect(
      isRefused { () throws(SecretError) in
        try transaction.store(SecretBytes([2] as [UInt8]), for: identifier)
      })
    #expect(try backend.get("a") == [1])
  }

  @Test func manyValuesSurviveCompactionAndReopening() throws {
    let vault = try TestVault()
    let backend = vault.open()
    try backend.withTransaction { transaction throws(SecretError) in
      for index in 0..<3000 {
        try transaction.store(
          SecretBytes("value \(index)"),
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
