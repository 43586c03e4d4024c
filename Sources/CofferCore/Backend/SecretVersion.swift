public import FoundationEssentials

/// One version of a secret, without its value.
public struct SecretVersion: Hashable, Sendable {
  /// The kind of a version.
  public enum Kind: Hashable, Sendable {
    /// The secret has this value now.
    case current
    /// The value was replaced or removed.
    case earlier
    /// The value lost to the current one when two copies of a vault were merged, and nothing was stored since.
    case conflict
    /// The secret was removed. There is no value.
    case removal
  }

  /// Identifies the version among those of its secret. A later version has a higher number, and no number is used
  /// again. The numbers of one secret need not be consecutive.
  public let number: Int
  /// The kind of the version.
  public let kind: Kind
  /// When the version was stored, or the secret removed.
  public let date: Date
  /// The metadata that was stored with the value. Empty for a removal.
  public let metadata: SecretMetadata

  /// Makes a description of a version. For backends.
  public init(number: Int, kind: Kind, date: Date, metadata: SecretMetadata) {
    (self.number, self.kind, self.date, self.metadata) = (number, kind, date, metadata)
  }
}

/// A removed secret of which a backend still has a version.
public struct RemovedSecret: Hashable, Sendable {
  /// The identifier that the secret had.
  public let identifier: SecretIdentifier
  /// When the secret was removed.
  public let removed: Date

  /// Makes a description of a removed secret. For backends.
  public init(identifier: SecretIdentifier, removed: Date) { (self.identifier, self.removed) = (identifier, removed) }
}

extension SecretVersion {
  /// Returns the versions of a secret, newest first, from its records, oldest first.
  package static func list(_ records: [some HistoryRecord]) -> [SecretVersion] {
    records.reversed().map { record in
      let kind: Kind =
        if record.isRemoval {
          .removal
        } else if let newest = records.last, record.number != newest.number {
          record.lost(to: newest) ? .conflict : .earlier
        } else {
          .current
        }
      return SecretVersion(number: record.number, kind: kind, date: record.date, metadata: record.metadata)
    }
  }
}
