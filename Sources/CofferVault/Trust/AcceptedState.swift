internal import CofferVaultFormat

/// A state of the vault that this process has accepted, and that a later file is compared with.
struct AcceptedState: Sendable {
  private(set) var record: KnownVaultRecord
  private var authentication: Authentication
  private enum Authentication {
    /// The keys of the vault, for the MAC of the record when it is needed.
    case keys(DerivedKeys)
    /// The MAC of the record.
    case mac([UInt8])
  }

  init(_ record: KnownVaultRecord, _ keys: DerivedKeys) {
    (self.record, authentication) = (record, .keys(keys))
  }

  /// The record as a record's file would contain it. The path is empty, because the state is only in memory.
  var content: KnownVaultFile.Content {
    let message = HashedMessage.knownVault(path: "", fields: record.fields)
    let mac =
      switch authentication {
      case .keys(let keys): keys.knownVaultMAC(of: message)
      case .mac(let mac): mac
      }
    return KnownVaultFile.Content(record: record, mac: mac, message: message)
  }

  /// Advances to a later state of the same file.
  mutating func advance(to snapshot: VaultSnapshot) {
    record.checkpoint = snapshot.state.checkpoint
    authentication = .keys(snapshot.keys)
  }

  /// The state without the keys.
  func withoutKeys() -> AcceptedState {
    var state = self
    state.authentication = .mac(content.mac)
    return state
  }
}
