import CofferCore
import CofferSimulation
import CofferTestSupport
import CofferVaultFormat
import Testing

@testable import CofferVault

/// The list of blocks in the root.
@Suite struct IndexTests {
  @Test(.long) func aVaultOfManyBlocksIsReadAndWrittenAnew() throws {
    let disk = try SimulatedDisk.withVault()
    // Each record fills a block.
    let text = String(repeating: "v", count: 1024)
    let attributes = Dictionary(uniqueKeysWithValues: (0..<16).map { ("\($0)", text) })
    let count = 300
    try disk.openVault().withTransaction { transaction throws(SecretError) in
      for number in 0..<count {
        try transaction.store(
          SecretBytes("\(number)"), for: SecretIdentifier(service: "tests", account: "\(number)"),
          metadata: SecretMetadata(attributes: attributes))
      }
    }
    #expect(try VaultAnatomy(#require(disk.content(of: "vault"))).blocks.count == count)
    let backend = disk.openVault()
    for number in stride(from: 0, to: count, by: 5) { #expect(try backend.text("\(number)") == "\(number)") }
    #expect(try backend.get("none") == nil)
    #expect(try backend.items(inService: "tests").count == count && backend.verify().secretCount == count)
    try backend.set("5", [1])
    try backend.rekey()
    #expect(try backend.get("5") == [1] && backend.verify().earlierVersionCount == 1)
  }

  /// A root has at most 1 MiB, which the entries of its blocks fill.
  @Test func aBaseOfMoreBlocksThanARootListsIsNotWritten() throws {
    /// The message of the error that ends the file. The entries name no blocks, so there is always one.
    func refusal(blocks: Int) throws -> SecretError? {
      let keys = DerivedKeys(randomness: SystemRandomness())
      let settings = BaseIndex.Settings(lookupKey: [UInt8](repeating: 0, count: 32), history: .none)
      var index = BaseIndex(sequence: 1, settings: settings, recent: BaseIndex.Recent(floor: 1))
      index.entries = Array(
        repeating: BaseIndex.Entry(
          first: VersionPosition(id: .zero, sequence: 1), offset: 0, length: 0, itemCount: 0, tag: .zero),
        count: blocks)
      var writer = VaultFileWriter(
        try MemoryMedium().newFile(), header: Header(vaultID: .zero, slots: []), keys: keys, index: index)
      return #expect(throws: SecretError.self) { try writer.finish() }
    }
    // Without its entries, a root has 72 bytes and 14 of fields.
    let most = ((1 << 20) - 94) / 56
    for (blocks, isTooMany) in [(most, false), (most + 1, true)] {
      let error = try refusal(blocks: blocks)
      #expect(error?.code == .tooLarge)
      #expect(error?.description.contains("than one file can list") == isTooMany)
    }
  }
}
