import CofferTestSupport
import CofferVault
import CofferVaultFormat
import Testing

/// The limits and costs that the documents state.
@Suite struct LimitTests {
  @Test func theDefaultsAreThoseOfTheDocuments() {
    let options = VaultOptions()
    #expect(options.lockTimeout == .seconds(10))
    #expect(options.maximumPassphraseMemory == 1 << 30 && options.maximumPassphraseWork == 4 << 30)
    #expect(options.passphraseMemory == 64 * 1024 * 1024 && options.passphrasePasses == 3)
    #expect(options.knownVaultsDirectory == nil && options.firstUsePolicy == nil && options.pins.isEmpty)
    let environment = VaultEnvironment()
    #expect(environment.compactionThreshold == 1024 * 1024)
    #expect(environment.recordRoleChangeDistance == 64)
    #expect(environment.watchPeriod == .seconds(2))
    #expect(VaultBackend.maximumSecretSize == 16 * 1024 * 1024)
    #expect(VaultKey.length == 32)
  }

  @Test func theSizesAreThoseOfTheFormat() {
    #expect(Layout.magic == [0x89, 0x43, 0x4F, 0x46, 0x0D, 0x0A, 0x1A, 0x0A] && Layout.version == 1)
    #expect(Layout.pageSize == 4096 && Layout.maximumHeaderLength == 1024 * 1024)
    #expect(Layout.headerPrefixLength == 64 && Layout.headerSuffixLength == 64)
    #expect(Layout.maximumKeySlots == 240 && Layout.maximumSlotLabelLength == 64)
    #expect(Layout.nonceLength == 24 && Layout.sealOverhead == 24 + 16)
    #expect(Layout.framePrefixLength == 4 && Layout.paddingUnit == 32)
    #expect(Layout.maximumValueLength == 16 * 1024 * 1024)
    #expect(Layout.maximumPartLength == 1024 * 1024 && Layout.maximumReplayLength == 1024 * 1024)
    #expect(Layout.blockTarget == 16_384 && Layout.directoryEntryLength == 28)
    #expect(Layout.rootPrefixLength == 72 && Layout.rootEntryLength == 56 && Layout.maximumLineage == 64)
    #expect(Layout.maximumRecentChanges == 2048 && Checkpoint.length == 24)
    #expect(CommitState.length == 4096 - 40)
    for (baseEnd, target) in [(0, 32), (4 << 20, 32), (8 << 20, 64), (128 << 20, 1024), (1 << 30, 1024)] {
      #expect(Layout.replayTarget(baseEnd: baseEnd) == target * 1024, "\(baseEnd)")
    }
    #expect(KnownVaultRecord.slotLength == 512 && KnownVaultRecord.hashedLength == 496)
    #expect(Subkey.allCases.map(\.rawValue) == Array(1...8) && Subkey.context == "coffer01")
    #expect(Layout.maximumUnknownFields == 65_536 && Layout.maximumFormerKeySlots == 256 && Padding.mark == 0x80)
  }

  /// The bytes of the format that bind a seal to its place.
  @Test func theTextsOfTheFormatAreItsOwn() {
    let vault = Bytes16.zero
    func text(_ bytes: [UInt8]) -> String { String(decoding: bytes.prefix { $0 >= 0x20 }, as: UTF8.self) }
    #expect(text(SealContext.commitSlot(0, headerMAC: []).associatedData) == "coffer-commit")
    for part in [BasePart.block, .recent, .root] {
      #expect(
        text(SealContext.base(part, file: vault, offset: 0).associatedData) == "coffer-\(part.rawValue)")
    }
    #expect(text(SealContext.lineage(vault: vault).associatedData) == "coffer-lineage")
    #expect(text(HashedMessage.masterCommitment(vault: vault)) == "coffer-master-key")
    for type in 1...4 as ClosedRange<UInt8> {
      let name = type <= 2 ? "coffer-key-slot" : "coffer-recipient-slot"
      #expect(text(HashedMessage.slotKey(vault: vault, slotHeader: [type])) == name)
    }
    #expect(text(HashedMessage.pin(fields: [], tag: .zero)) == "coffer-pin")
    #expect(text(HashedMessage.knownVault(text: "", fields: [])) == "coffer-known-vault")
  }
}
