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
    #expect(options.knownVaultsDirectory == nil && options.firstUsePolicy == nil)
    let environment = VaultEnvironment()
    #expect(environment.compactionThreshold == 256 * 1024)
    #expect(environment.recordRoleChangeDistance == 64)
    #expect(environment.watchPeriod == .seconds(2))
    #expect(VaultBackend.maximumSecretSize == 16 * 1024 * 1024)
    #expect(VaultKey.length == 32)
  }

  @Test func theSizesAreThoseOfTheFormat() {
    #expect(Layout.magic == [0x89, 0x43, 0x4F, 0x46, 0x0D, 0x0A, 0x1A, 0x0A] && Layout.majorVersion == 1)
    #expect(Layout.pageSize == 4096 && Layout.maximumHeaderLength == 65_536)
    #expect(Layout.headerPrefixLength == 64 && Layout.headerSuffixLength == 64)
    #expect(Layout.maximumKeySlots == 16 && Layout.maximumSlotLabelLength == 64)
    #expect(Layout.nonceLength == 24 && Layout.sealOverhead == 24 + 16)
    #expect(Layout.framePrefixLength == 4 && Layout.paddingUnit == 32)
    #expect(Layout.maximumMetadataLength == 65_536 && Layout.maximumValueLength == 16 * 1024 * 1024)
    #expect(Layout.maximumBlockLength == 1024 * 1024 && Layout.blockTarget == 16_384)
    #expect(Layout.rootPrefixLength == 24 && Layout.rootEntryLength == 56 && Layout.maximumLineage == 64)
    #expect(Layout.maximumRootLength == 16 * 1024 * 1024 && Layout.maximumReplayLength == 32 * 1024 * 1024)
    #expect(Layout.maximumBaseRecords == 2001)
    #expect(CommitState.length == 4096 - 40 && BlockEntry.overhead == 12 && BlockEntry.minimumLength == 41)
    #expect(KnownVaultRecord.slotLength == 512 && KnownVaultRecord.hashedLength == 496)
    #expect(Subkey.allCases.map(\.rawValue) == Array(1...9) && Subkey.context == "coffer01")
    #expect(TaggedField.firstCritical == 0x8000 && Padding.mark == 0x80)
  }

  /// The bytes of the format that bind a seal to its place.
  @Test func theTextsOfTheFormatAreItsOwn() {
    let vault = Bytes16.zero
    func text(_ bytes: [UInt8]) -> String { String(decoding: bytes.prefix { $0 >= 0x20 }, as: UTF8.self) }
    #expect(text(SealContext.commitSlot(0, headerHash: []).associatedData) == "coffer-commit")
    #expect(text(SealContext.block(0, file: vault, offset: 0).associatedData) == "coffer-block")
    #expect(text(SealContext.root(file: vault, offset: 0).associatedData) == "coffer-root")
    #expect(text(SealContext.lineage(vault: vault).associatedData) == "coffer-lineage")
    #expect(text(HashedMessage.masterCommitment(vault: vault)) == "coffer-master-key")
    #expect(text(HashedMessage.slotKey(vault: vault, slotHeader: [])) == "coffer-key-slot")
    #expect(text(HashedMessage.knownVault(path: "", fields: [])) == "coffer-known-vault")
  }
}
