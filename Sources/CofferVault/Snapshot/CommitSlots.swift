package import CofferCore
package import CofferVaultFormat

/// Both commit slots of a file, opened and compared.
package struct CommitSlots {
  package private(set) var state: CommitState
  /// The index of the slot that the next commit writes first. The other slot holds ``state``.
  package private(set) var next: Int
  /// Whether one of the slots is invalid. Then the last change may be missing.
  package private(set) var isRecovered: Bool
  /// The nonces of both slots, which change with each commit.
  private(set) var nonces: [UInt8]

  package init(reading vault: VaultFile, keys: DerivedKeys) throws(SecretError) {
    let pages = try vault.storage.read(2 * Layout.pageSize, at: vault.headerLength)
    var states: [(slot: Int, state: CommitState)] = []
    for slot in 0...1 {
      let page = pages.span.extracting(slot * Layout.pageSize..<(slot + 1) * Layout.pageSize)
      guard let bytes = keys.open(page, .commitSlot(slot, headerMAC: vault.header.mac)) else { continue }
      states.append((slot, try CommitState(parsing: bytes, headerLength: vault.headerLength)))
    }
    guard var newest = states.first else { throw .tampered("neither commit slot is authentic") }
    if var other = states.dropFirst().first {
      if other.state.sequence > newest.state.sequence { swap(&newest, &other) }
      guard other.state == newest.state || other.state.precedes(newest.state) else {
        throw .tampered("the commit slots contradict each other")
      }
    }
    let size = try vault.storage.size()
    guard states.allSatisfy({ $0.state.end <= size }) else { throw .tampered("the file is cut short") }
    (state, next, isRecovered) = (newest.state, 1 - newest.slot, states.count < 2)
    nonces = Array(pages[..<Layout.nonceLength] + pages[Layout.pageSize...].prefix(Layout.nonceLength))
  }

  /// Applies a commit that wrote `pages`, in the order of the file.
  mutating func advance(to state: CommitState, pages: [[UInt8]]) {
    (self.state, next, isRecovered) = (state, 1 - next, false)
    nonces = pages.flatMap { $0[..<Layout.nonceLength] }
  }

  /// Reads only the nonces, which show at low cost whether there was a commit.
  static func nonces(of vault: VaultFile) throws(SecretError) -> [UInt8] {
    // From the beginning of one slot to that of the other, in one call.
    let bytes = try vault.storage.read(Layout.pageSize + Layout.nonceLength, at: vault.headerLength)
    return Array(bytes[..<Layout.nonceLength] + bytes[Layout.pageSize...])
  }
}
