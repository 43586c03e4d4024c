package import CofferCore
package import CofferVaultFormat

/// The master key of an unlocked vault and its subkeys, in guarded memory. Thread-safe.
package final class DerivedKeys: Sendable {
  /// The length of a master key in bytes.
  static let masterLength = 32

  package let master: SecretBytes
  private let subkeys: [SecretBytes]
  package let randomness: any Randomness
  /// Where the master key came from. This tells who can have made the vault.
  let origin: Origin
  /// The id of the key slot that it was in, or `nil`.
  let slot: Bytes16?

  package enum Origin: Sendable {
    /// From the key slot of a secret of the user. The maker of the vault knew that secret.
    case secret
    /// From the slot of a recipient, for whom anyone can make a vault.
    case recipient
    /// A program kept it. Somebody whose key was removed since can have kept it, too.
    case kept
  }

  /// `randomness` gives the nonces of seals.
  package init(master: SecretBytes, randomness: any Randomness, origin: Origin = .secret, slot: Bytes16? = nil) {
    precondition(master.count == Self.masterLength)
    subkeys = Subkey.allCases.map { Sodium.subkey($0, of: master) }
    (self.master, self.randomness, self.origin, self.slot) = (master, randomness, origin, slot)
  }

  /// The keys of a new random master key.
  package convenience init(randomness: any Randomness) {
    self.init(master: SecretBytes(count: Self.masterLength) { randomness.fill($0) }, randomness: randomness)
  }

  private func key(_ subkey: Subkey) -> SecretBytes { subkeys[Int(subkey.rawValue) - 1] }

  // MARK: Hashes

  /// Returns the commitment that ties a header to this master key.
  func masterCommitment(_ vault: Bytes16) -> [UInt8] {
    BLAKE2b.hash(HashedMessage.masterCommitment(vault: vault).span, key: master, count: 32)
  }

  private func mac(of header: Header) -> [UInt8] {
    BLAKE2b.hash(header.authenticatedBytes.span, key: key(.headerMAC), count: 32)
  }

  /// Whether the header was made for this master key. The rest of the header is not authenticated.
  package func isCommitted(to header: Header) -> Bool {
    Sodium.isEqual(masterCommitment(header.vaultID), header.masterCommitment)
  }

  /// Throws `.tampered` unless the header is authentic.
  package func authenticate(_ header: Header) throws(SecretError) {
    guard isCommitted(to: header), Sodium.isEqual(mac(of: header), header.mac) else {
      throw .tampered("the header is not authentic")
    }
  }

  /// Sets the header's commitment and MAC.
  package func authorize(_ header: inout Header) {
    header.masterCommitment = masterCommitment(header.vaultID)
    header.mac = mac(of: header)
  }

  /// Returns the mask of a frame's first field. `nonce` is that of the sealed metadata. Without a mask, a program that
  /// has no key could find every frame, and so learn the number of changes and the size of each value.
  package func frameMask(nonce: UnsafeRawBufferPointer) -> UInt32 {
    UInt32(truncatingIfNeeded: Sodium.shortHash(nonce, key: key(.frameMask)))
  }

  // MARK: Known vaults, pins and lineage

  /// Returns the digest of a pin. `message` is ``HashedMessage/pin(fields:tag:)``.
  func pinDigest(of message: [UInt8]) -> Bytes16 {
    BLAKE2b.hash(message.span, key: key(.knownVaults), count: 16).withUnsafeBytes { Bytes16($0) }
  }

  /// Returns the MAC of a known-vault record. `message` is ``HashedMessage/knownVault(path:fields:)``.
  package func knownVaultMAC(of message: [UInt8]) -> [UInt8] {
    BLAKE2b.hash(message.span, key: key(.knownVaults), count: 32)
  }

  /// Whether `mac` is the MAC of `message` under one of the former master keys in a sealed lineage. Throws `.tampered`.
  package func isFormerMAC(
    _ mac: [UInt8], of message: [UInt8], lineage: [UInt8], vault: Bytes16
  ) throws(SecretError) -> Bool {
    let keys = try openLineage(lineage, vault: vault)
    var isFound = false
    for start in stride(from: 0, to: keys.count, by: 32) {
      let key = keys.withBytes { SecretBytes($0.extracting(start..<start + 32)) }
      if Sodium.isEqual(BLAKE2b.hash(message.span, key: key, count: 32), mac) { isFound = true }
    }
    return isFound
  }

  /// Seals the lineage of a vault whose master key changes from `former`'s to this one. `earlier` is the lineage sealed
  /// under `former`, if there is one.
  package func lineage(after former: DerivedKeys, _ earlier: [UInt8]?, vault: Bytes16) throws(SecretError) -> [UInt8] {
    var keys = former.key(.knownVaults)
    if let earlier {
      let others = try former.openLineage(earlier, vault: vault)
      let count = min(others.count, (Layout.maximumLineage - 1) * 32)
      keys = keys.withBytes { first in
        others.withBytes { SecretBytes(joining: first, $0.extracting(first: count)) }
      }
    }
    return keys.withBytes { seal($0, .lineage(vault: vault)) }
  }

  /// Returns the keys in a sealed lineage. Throws `.tampered` unless it is authentic.
  @discardableResult
  func openLineage(_ sealed: [UInt8], vault: Bytes16) throws(SecretError) -> SecretBytes {
    let context = SealContext.lineage(vault: vault)
    var isAuthentic = false
    let keys = SecretBytes(count: max(0, sealed.count - Layout.sealOverhead)) {
      isAuthentic = Sodium.open(sealed.span, associatedData: context.associatedData, key: key(context.subkey), into: $0)
    }
    guard isAuthentic else { throw .tampered("the lineage is not authentic") }
    return keys
  }

  // MARK: Seals

  /// Seals bytes that need not be in guarded memory.
  package func seal(_ plaintext: [UInt8], _ context: SealContext) -> [UInt8] {
    seal(plaintext.span, context)
  }

  private func seal(_ plaintext: Span<UInt8>, _ context: SealContext) -> [UInt8] {
    Sodium.seal(plaintext, associatedData: context.associatedData, key: key(context.subkey), randomness: randomness)
  }

  /// Returns the plaintext of a seal, or `nil` if the seal is not authentic.
  package func open(_ sealed: Span<UInt8>, _ context: SealContext) -> [UInt8]? {
    Sodium.open(sealed, associatedData: context.associatedData, key: key(context.subkey))
  }

  /// Returns the plaintext of a seal that must end in `tag`. Throws `.tampered`.
  package func open(_ sealed: [UInt8], tag: Bytes16, _ context: SealContext) throws(SecretError) -> [UInt8] {
    guard sealed.count > Layout.sealOverhead, Bytes16(tagOf: sealed) == tag,
      let plaintext = open(sealed.span, context)
    else { throw .tampered("\(context.part) is not authentic") }
    return plaintext
  }

  /// Opens a seal into `output`, which must be 40 bytes shorter. Returns the length of the plaintext without its
  /// padding, or `nil` if the seal or the padding is not authentic.
  package func openPadded(
    _ sealed: Span<UInt8>, _ context: SealContext, into output: UnsafeMutableRawBufferPointer
  ) -> Int? {
    let key = key(context.subkey)
    guard Sodium.open(sealed, associatedData: context.associatedData, key: key, into: output) else { return nil }
    return Padding.unpaddedCount(UnsafeRawBufferPointer(output))
  }

  /// Pads and seals a value.
  package func sealValue(_ value: SecretBytes, _ context: SealContext) -> [UInt8] {
    // The value is padded in guarded memory: no plaintext may be outside it.
    let padded = SecretBytes(count: Layout.padded(value.count)) { padded in
      value.withUnsafeBytes { padded.copyMemory(from: $0) }
      padded[value.count] = Padding.mark
    }
    return padded.withBytes { seal($0, context) }
  }

  /// Returns the value that `record` describes, sealed under `other`, and for `sequence` if it is given. Throws
  /// `.tampered`.
  func resealed(
    _ sealed: [UInt8], vault: Bytes16, record: Record, under other: DerivedKeys, sequence: Int? = nil
  ) throws(SecretError) -> [UInt8] {
    var result: [UInt8] = []
    let context = SealContext.value(vault: vault, lookupID: record.id, sequence: sequence ?? record.sequence)
    _ = try openValue(sealed, vault: vault, record: record) { padded in
      result = other.seal(padded.bindMemory(to: UInt8.self).span, context)
    }
    return result
  }

  /// Returns the value that `record` describes. `body` gets it with its padding. Throws `.tampered`.
  package func openValue(
    _ sealed: [UInt8], vault: Bytes16, record: Record,
    _ body: (UnsafeRawBufferPointer) -> Void = { _ in }
  ) throws(SecretError) -> SecretBytes {
    guard sealed.count > Layout.sealOverhead, Bytes16(tagOf: sealed) == record.valueTag else {
      throw .tampered("a value is not the one that its record names")
    }
    let context = SealContext.value(vault: vault, lookupID: record.id, sequence: record.sequence)
    var isAuthentic = false
    let value = SecretBytes(capacity: sealed.count - Layout.sealOverhead) { output in
      let count = openPadded(sealed.span, context, into: output) ?? .max
      isAuthentic = count <= Layout.maximumValueLength
      if isAuthentic { body(UnsafeRawBufferPointer(output)) }
      return isAuthentic ? count : 0
    }
    guard isAuthentic else { throw .tampered("\(context.part) is not authentic") }
    return value
  }
}
