import CofferCore
import CofferTestSupport
import CofferVault
import Synchronization
import Testing

/// Another process changes the keys of a vault after this one has looked at them, and before it has locked the vault.
@Suite struct ConcurrentKeyChangeTests {
  /// Runs `body` once, before it returns the first random bytes.
  private final class Interruption: Randomness {
    private let body: Mutex<(@Sendable () -> Void)?>

    init(_ body: @escaping @Sendable () -> Void) { self.body = Mutex(body) }

    func fill(_ bytes: UnsafeMutableRawBufferPointer) {
      let body = body.withLock { body in
        defer { body = nil }
        return body
      }
      body?()
      SystemRandomness().fill(bytes)
    }
  }

  enum Change: CaseIterable { case add, replace, replaceWithNewMasterKey, remove, rekey }

  private static let first = FixedCredential(kind: .passphrase("first"))
  private static let second = FixedCredential(kind: .passphrase("second"))

  /// Makes `change` while another process makes `other`, and expects that only the other change is made.
  private func expectConflict(
    _ change: Change, _ other: @escaping @Sendable (VaultBackend) throws -> Void
  ) throws {
    let vault = try TestVault()
    try vault.open().set("name", [1, 2, 3])
    let slot = try vault.open().addKeySlot(Self.first.credential)
    let backend = vault.open(
      environment: VaultEnvironment(
        randomness: Interruption {
          do { try other(vault.open()) } catch { Issue.record(error) }
        }))
    let error = thrown { () throws(SecretError) in
      switch change {
      case .add: try backend.addKeySlot(Self.second.credential)
      case .replace: try backend.replaceKeySlot(id: slot.id, with: Self.second.credential)
      case .replaceWithNewMasterKey:
        try backend.replaceKeySlot(
          id: slot.id, with: Self.second.credential, opened: backend.openKeySlots())
      case .remove: try backend.removeKeySlots(ids: [slot.id])
      case .rekey: try backend.rekey(opened: backend.openKeySlots(with: [Self.first]))
      }
    }
    #expect(error?.code == .conflict, "\(change)")
    #expect(try vault.open().get("name") == [1, 2, 3])
    #expect(try vault.open(Self.first).get("name") == [1, 2, 3], "\(change)")
    #expect(thrown { () throws(SecretError) in try vault.open(Self.second).unlock() }?.code == .wrongKey)
    // A second attempt sees the other process's change, and succeeds.
    try backend.rekey(opened: backend.openKeySlots(with: [Self.first, FixedCredential.otherKey]))
    #expect(try vault.open().get("name") == [1, 2, 3])
  }

  @Test(arguments: Change.allCases) func aMasterKeyThatAnotherProcessChangedEndsTheChange(_ change: Change)
    throws
  {
    try expectConflict(change) { try $0.rekey(opened: $0.openKeySlots(with: [Self.first])) }
  }

  @Test(arguments: [Change.replaceWithNewMasterKey, .remove, .rekey])
  func aSlotThatAnotherProcessAddedIsNotLost(_ change: Change)
    throws
  {
    try expectConflict(change) { try $0.addKeySlot(FixedCredential.otherKey.credential) }
  }
}
