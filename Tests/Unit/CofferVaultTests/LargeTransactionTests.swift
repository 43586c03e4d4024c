import CofferCore
import CofferTestSupport
import CofferVault
import Foundation
import Testing

/// A transaction of several megabytes.
@Suite struct LargeTransactionTests {
  private let vault: TestVault
  private let backend: VaultBackend

  init() throws {
    vault = try TestVault()
    backend = vault.open()
    try backend.set("kept", [1])
  }

  /// Stores 30 values of 200 KB, of which the last ten replace the first ten.
  private func fill(_ transaction: any SecretTransaction) throws(SecretError) {
    for number in 0..<30 {
      try transaction.store(
        SecretBytes([UInt8](repeating: UInt8(number), count: 200_000)),
        for: identifier("big\(number % 20)"), metadata: nil)
    }
  }

  /// Below the threshold the transaction is appended. Otherwise it rewrites the file.
  @Test(arguments: [1 << 20, 1 << 30]) func itsValuesAreFoundInItAndAfterIt(_ threshold: Int) throws {
    var environment = VaultEnvironment()
    environment.compactionThreshold = threshold
    let backend = vault.open(environment: environment)
    try backend.withTransaction { transaction throws(SecretError) in
      try fill(transaction)
      for (number, value) in [(0, 20), (9, 29), (10, 10), (19, 19)] as [(Int, UInt8)] {
        let found = try transaction.lookUp(identifier("big\(number)"))?.array()
        #expect(found?.first == value)
      }
      let isRemoved = try transaction.remove(identifier("big3"))
      let left = try transaction.items(inService: nil)
      #expect(isRemoved && left.count == 20)
    }
    for backend in [backend, vault.open()] {
      for number in 0..<20 {
        let value = number == 3 ? nil : UInt8(number < 10 ? number + 20 : number)
        #expect(try backend.get("big\(number)") == value.map { .init(repeating: $0, count: 200_000) })
      }
      #expect(try backend.get("kept") == [1])
      #expect(try backend.versions(of: identifier("big0")).count == 2)
    }
    #expect(try backend.verify().secretCount == 20)
  }

  @Test func ifItFailsTheFileIsAsBefore() throws {
    let before = try vault.bytes
    // A kill would leave a further file behind.
    var filesBeside: [String] = []
    #expect(throws: SecretError.self) {
      try backend.withTransaction { transaction throws(SecretError) in
        try fill(transaction)
        filesBeside = (try? FileManager.default.contentsOfDirectory(atPath: vault.directory.path)) ?? []
        throw SecretError(.conflict, "A test ends the transaction.", advice: "")
      }
    }
    #expect(filesBeside == ["test.vault"])
    #expect(try vault.bytes == before)
    #expect(try FileManager.default.contentsOfDirectory(atPath: vault.directory.path) == ["test.vault"])
    #expect(try backend.get("big0") == nil && backend.get("kept") == [1])
  }
}
