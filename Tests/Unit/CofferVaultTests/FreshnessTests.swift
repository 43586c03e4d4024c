import CofferCore
import CofferSystem
import CofferTestSupport
import CofferVault
import CofferVaultFormat
import FoundationEssentials
import Synchronization
import Testing

/// No salt, id, nonce or key is ever used twice, whatever happens to a vault. The tests read them from the files.
@Suite struct FreshnessTests {
  /// The random bytes of a file, by their purpose.
  private struct Drawn {
    var ids: [String: [UInt8]] = [:]
    /// The nonce of each seal in the file, by the name of the seal.
    var nonces: [String: [UInt8]] = [:]

    var all: [String: [UInt8]] { ids.merging(nonces) { first, _ in first } }
  }

  private func drawn(_ vault: TestVault, _ credential: FixedCredential = .key) throws -> Drawn {
    let environment = VaultEnvironment()
    let file = try VaultFile(LocalMedium(path: vault.path, environment: environment).open())
    let chain = CredentialChain([credential], options: .cheap, environment: environment)
    let keys = try chain.unlock(file)
    let open = try VaultSnapshot(file, keys: keys)
    let bytes = try vault.bytes
    func nonce(_ offset: Int) -> [UInt8] { Array(bytes[offset..<offset + Layout.nonceLength]) }

    var found = Drawn()
    found.ids["vault"] = encode(file.header.vaultID)
    found.ids["file"] = encode(file.header.fileID)
    found.ids["master key"] = keys.master.array()
    found.ids["lookup key"] = open.base.settings.lookupKey
    for (index, slot) in file.header.slots.enumerated() {
      found.ids["id of slot \(index)"] = encode(slot.id)
      switch slot.parameters {
      case .key(let salt), .passphrase(_, _, let salt): found.ids["salt of slot \(index)"] = salt
      default: break
      }
      found.nonces["slot \(index)"] = Array(slot.wrappedKey[..<Layout.nonceLength])
    }
    for slot in 0...1 {
      found.nonces["commit slot \(slot)"] = nonce(file.headerLength + slot * Layout.pageSize)
    }
    found.nonces["root"] = nonce(open.state.rootOffset)
    if let lineage = open.base.settings.lineage {
      found.nonces["lineage"] = Array(lineage[..<Layout.nonceLength])
    }
    for (index, block) in open.base.entries.enumerated() {
      found.nonces["block \(index)"] = nonce(block.offset)
    }
    if open.base.recent.length > 0 {
      found.nonces["recent changes"] = nonce(open.state.rootOffset - open.base.recent.length)
    }
    let tail = try open.tailItems()
    for (item, frame) in tail {
      found.nonces["frame \(item.record.sequence)"] = nonce(frame.lowerBound + Layout.framePrefixLength)
    }
    for item in try open.baseItems(in: bytes) + tail.map(\.item) where !item.isRemoval {
      found.nonces["value \(item.record.sequence)"] = nonce(item.valueOffset)
    }
    return found
  }

  /// Expects that no two of the values are the same.
  private func expectDistinct(
    _ values: [(String, [UInt8])], sourceLocation: SourceLocation = #_sourceLocation
  ) {
    var names: [[UInt8]: String] = [:]
    for (name, bytes) in values {
      if let other = names.updateValue(name, forKey: bytes) {
        Issue.record("\(name) is also \(other)", sourceLocation: sourceLocation)
      }
    }
  }

  private func vaultWithSecrets() throws -> TestVault {
    let vault = try TestVault()
    let backend = vault.open()
    try backend.addKeySlot(FixedCredential(kind: .passphrase("one")).credential)
    try backend.addKeySlot(FixedCredential(kind: .passphrase("two")).credential)
    try backend.addKeySlot(FixedCredential.otherKey.credential)
    for name in ["a", "b", "a", "a"] { try backend.set(name, [1, 2, 3]) }
    try backend.compact()
    for name in ["a", "b", "c"] { try backend.set(name, [1, 2, 3]) }
    try backend.remove(identifier("b"))
    return vault
  }

  @Test func noTwoFieldsOfTwoVaultsAreTheSame() throws {
    let vaults = try [vaultWithSecrets(), vaultWithSecrets()]
    let fields = try vaults.enumerated().flatMap { index, vault in
      try drawn(vault).all.map { ("\($0.key) of vault \(index)", $0.value) }
    }
    // Each vault has at least: four slots with three fields, two commit slots, root, block, seven values, four frames.
    #expect(fields.count >= 2 * (3 + 12 + 4 + 7 + 4))
    expectDistinct(fields)
  }

  @Test func noCommitUsesANonceAgain() throws {
    let vault = try TestVault()
    let backend = vault.open()
    var fields: [(String, [UInt8])] = []
    for commit in 0..<6 {
      try backend.set("a", [1])
      let nonces = try drawn(vault).nonces
      for slot in 0...1 {
        fields.append(("slot \(slot) of commit \(commit)", nonces["commit slot \(slot)"] ?? []))
      }
      fields.append(("frame \(commit)", nonces["frame \(commit + 2)"] ?? []))
      fields.append(("value \(commit)", nonces["value \(commit + 2)"] ?? []))
    }
    expectDistinct(fields)
    #expect(fields.allSatisfy { $0.1.count == Layout.nonceLength })
  }

  /// A kept master key opens the vault without a slot.
  @Test func aKeptMasterKeyDrawsNewNoncesAsWell() throws {
    let vault = try TestVault()
    let master = try vault.open().withMasterKey { _, master in master.array() }
    let kept = VaultCredentialSource("a kept master key") { _ throws(SecretError) in
      .masterKey(SecretBytes(master))
    }
    let backend = VaultBackend(path: vault.path, credentials: [kept], options: .cheap)
    var fields: [(String, [UInt8])] = []
    for change in 0..<4 {
      try backend.set("a", [1])
      for (name, nonce) in try drawn(vault).nonces
      where name.hasPrefix("commit") || name.hasSuffix(" \(change + 2)") {
        fields.append(("\(name) after \(change)", nonce))
      }
    }
    #expect(fields.count == 16)
    expectDistinct(fields)
  }

  @Test func aNewFileHasANewIdAndNewNoncesExceptThoseOfItsValues() throws {
    let vault = try vaultWithSecrets()
    let before = try drawn(vault)
    try vault.open().compact()
    let after = try drawn(vault)
    let kept = Set(
      ["vault", "master key", "lookup key"]
        + before.all.keys.filter { $0.contains("slot ") && !$0.contains("commit") })
    for (name, bytes) in after.all where kept.contains(name) || name.hasPrefix("value") {
      #expect(before.all[name] == bytes, "\(name)")
    }
    func changed(_ drawn: Drawn, _ file: String) -> [(String, [UInt8])] {
      drawn.all.filter { !kept.contains($0.key) && !$0.key.hasPrefix("value") }.map {
        ("\($0.key) \(file)", $0.value)
      }
    }
    expectDistinct(changed(before, "before") + changed(after, "after"))
  }

  @Test func aNewMasterKeyHasNewNoncesEverywhere() throws {
    let vault = try vaultWithSecrets()
    let others = ["one", "two"].map { FixedCredential(kind: .passphrase($0)) }
    var fields = try drawn(vault).all.map { ("\($0.key) before", $0.value) }
    for round in 0..<2 {
      try vault.open().rekey(opened: vault.open().openKeySlots(with: others + [.otherKey]))
      let after = try drawn(vault)
      #expect(after.nonces["lineage"] != nil)
      // The vault, its lookup key and its slots stay.
      fields += after.all
        .filter {
          !["vault", "lookup key"].contains($0.key) && !$0.key.hasPrefix("id of")
            && !$0.key.hasPrefix("salt of")
        }
        .map { ("\($0.key) after \(round)", $0.value) }
    }
    expectDistinct(fields)
  }

  @Test func aReplacedSlotHasANewIdSaltAndNonce() throws {
    let vault = try TestVault(FixedCredential(kind: .passphrase("one")))
    let credential = FixedCredential(kind: .passphrase("two"))
    let before = try drawn(vault, FixedCredential(kind: .passphrase("one")))
    let backend = vault.open(FixedCredential(kind: .passphrase("one")))
    let id = try #require(
      try VaultBackend(path: vault.path, credentials: []).description().keySlots.first?.id)
    try backend.replaceKeySlot(id: id, with: credential.credential)
    let after = try drawn(vault, credential)
    expectDistinct(
      ["id of slot 0", "salt of slot 0", "slot 0", "file"].flatMap { name in
        [("\(name) before", before.all[name] ?? []), ("\(name) after", after.all[name] ?? [])]
      })
  }

  @Test func generatedKeysDiffer() {
    expectDistinct((0..<8).map { ("key \($0)", VaultKey.generate().array()) })
    let system = SystemRandomness()
    expectDistinct((0..<8).map { ("array \($0)", system.array(16)) })
    expectDistinct((0..<8).map { ("id \($0)", encode(system.bytes16())) })
  }

  /// Nobody can foresee the name of a temporary file and put something in its place.
  @Test func temporaryFilesHaveNewNames() throws {
    let records = try TemporaryDirectory()
    let disk = NamingFileSystem()
    let environment = VaultEnvironment(fileSystem: disk)
    var options = VaultOptions.cheap
    options.knownVaultsDirectory = records.path
    let vaults = try (0..<2).map { _ in try TestVault(environment: environment) }
    for vault in vaults {
      let backend = vault.open(options: options, environment: environment)
      try backend.set("a", [1])
      for _ in 0..<2 { try backend.compact() }
      try backend.trust()
      try backend.trust()
    }
    let names = disk.created.withLock { $0 }
    #expect(names.count >= 12)
    expectDistinct(names.enumerated().map { ("\($0.offset)", Array($0.element.suffix(32).utf8)) })
  }
}

/// The real disk, which remembers the names of the files that it creates.
private final class NamingFileSystem: FileSystem {
  let created = Mutex<[String]>([])

  func locate(_ path: String, followingLink: Bool) throws(FileSystemError) -> Location {
    let location = try LinuxFileSystem().locate(path, followingLink: followingLink)
    return Location(
      directory: NamingDirectory(directory: location.directory, fileSystem: self), name: location.name,
      path: location.path)
  }

  private struct NamingDirectory: PassingDirectory {
    let directory: any Directory
    let fileSystem: NamingFileSystem
    func create(_ name: String) throws(FileSystemError) -> any File {
      fileSystem.created.withLock { $0.append(name) }
      return try directory.create(name)
    }
  }
}
