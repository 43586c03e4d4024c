internal import CofferSystem
package import CofferVaultFormat
package import CofferCore

/// Both commit slots of a file, read and judged.
package struct CommitSlots {
  package let state: CommitState
  /// Which slot the state is from; the next commit goes to the other.
  package let current: Int
  /// One of the slots does not open.
  package let isRecovered: Bool
  /// The nonces of both: they differ whenever a slot was written.
  package let nonces: [UInt8]

  package init(reading vault: VaultFile, keys: DerivedKeys) throws(SecretError) {
    let pages = try vault.file.readFully(2 * Layout.pageSize, at: vault.headerLength, path: vault.path)
    var states: [(slot: Int, state: CommitState)] = []
    for slot in 0...1 {
      let page = pages.span.extracting(slot * Layout.pageSize..<(slot + 1) * Layout.pageSize)
      guard let bytes = keys.openCommit(page, slot: slot, headerHash: vault.headerHash) else { continue }
      states.append((slot, try CommitState(parsing: bytes, headerLength: vault.headerLength)))
    }
    guard var newest = states.first else { throw .tampered("neither commit slot is authentic") }
    if let other = states.dropFirst().first {
      if other.state.sequence > newest.state.sequence { newest = other }
      guard other.state.sequence != newest.state.sequence || other.state == newest.state else {
        throw .tampered("the commit slots contradict each other")
      }
    }
    let size: Int
    do throws(FileSystemError) { size = try vault.file.status().size } catch {
      throw .io(error, "read", path: vault.path)
    }
    guard states.allSatisfy({ $0.state.end <= size }) else { throw .tampered("the file is cut short") }
    state = newest.state
    current = newest.slot
    isRecovered = states.count < 2
    nonces = Array(pages[..<Layout.nonceLength] + pages[Layout.pageSize...].prefix(Layout.nonceLength))
  }

  /// The nonces alone, to see cheaply whether anything was committed.
  package static func nonces(of vault: VaultFile) throws(SecretError) -> [UInt8] {
    try vault.file.readFully(Layout.nonceLength, at: vault.headerLength, path: vault.path)
      + vault.file.readFully(Layout.nonceLength, at: vault.headerLength + Layout.pageSize, path: vault.path)
  }
}
