internal import CofferVaultFormat

/// A state of the vault that this process has accepted, with what a later file is judged by.
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

  /// The record as a file of one would contain it. The path is that of no file, because the state is only in memory.
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

  /// The same state without the keys.
  func withoutKeys() -> AcceptedState {
    var state = self
    state.authentication = .mac(content.mac)
    return state
  }
}
