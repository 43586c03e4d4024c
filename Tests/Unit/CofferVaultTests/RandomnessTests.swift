import CofferCore
import CofferTestSupport
import CofferVault
import CofferVaultFormat
import FoundationEssentials
import Testing

/// Values that must never repeat are random in every byte.
@Suite struct RandomnessTests {
  private static let count = 64

  /// Expects many different values of each byte. Of 64 random bytes, 56 differ in the mean, and practically never fewer
  /// than 32.
  private func expectRandom(_ draws: [[UInt8]], _ what: String) throws {
    let length = try #require(draws.first).count
    #expect(draws.allSatisfy { $0.count == length } && draws.count == Self.count)
    for position in 0..<length {
      #expect(Set(draws.map { $0[position] }).count >= 32, "byte \(position) of \(what)")
    }
  }

  @Test func nonces() throws {
    let vault = try TestVault()
    let backend = vault.open()
    let key = SecretBytes([UInt8](repeating: 7, count: 32))
    var (seals, slots, frames): ([[UInt8]], [[UInt8]], [[UInt8]]) = ([], [], [])
    for _ in 0..<Self.count {
      let seal = Sodium.seal([0].span, associatedData: [], key: key, randomness: SystemRandomness())
      seals.append(Array(seal[..<Layout.nonceLength]))
      let end = try vault.bytes.count
      try backend.set("name", [1])
      let bytes = try vault.bytes
      slots.append(Array(bytes[Layout.pageSize...].prefix(Layout.nonceLength)))
      frames.append(Array(bytes[(end + Layout.framePrefixLength)...].prefix(Layout.nonceLength)))
    }
    try expectRandom(seals, "a nonce")
    try expectRandom(slots, "the nonce of a commit slot")
    try expectRandom(frames, "the nonce of a frame")
  }

  @Test func keysAndIDs() throws {
    try expectRandom((0..<Self.count).map { _ in VaultKey.generate().array() }, "a key")
    var (vaults, files, masters): ([[UInt8]], [[UInt8]], [[UInt8]]) = ([], [], [])
    var (slots, salts): ([[UInt8]], [[UInt8]]) = ([], [])
    for _ in 0..<Self.count {
      let vault = try TestVault(FixedCredential(kind: .passphrase("a")))
      let header = try Header(parsing: Array(vault.bytes.prefix(Layout.pageSize)))
      vaults.append(encode(header.vaultID))
      files.append(encode(header.fileID))
      let slot = try #require(header.slots.first)
      slots.append(encode(slot.id))
      guard case .passphrase(_, _, let salt) = slot.parameters else {
        Issue.record("The slot is not that of a passphrase.")
        return
      }
      salts.append(salt)
      masters.append(
        try vault.open(FixedCredential(kind: .passphrase("a"))).withMasterKey { _, master in
          master.array()
        })
    }
    try expectRandom(vaults, "the id of a vault")
    try expectRandom(files, "the id of a file")
    try expectRandom(masters, "a master key")
    try expectRandom(slots, "the id of a key slot")
    try expectRandom(salts, "a salt")
  }
}
