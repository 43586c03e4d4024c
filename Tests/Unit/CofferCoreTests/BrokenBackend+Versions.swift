import CofferCore
import Foundation

extension SecretVersion {
  /// The version with some of its parts replaced.
  func with(
    number: Int? = nil, kind: Kind? = nil, date: Date? = nil, metadata: SecretMetadata? = nil
  ) -> SecretVersion {
    SecretVersion(
      number: number ?? self.number, kind: kind ?? self.kind, date: date ?? self.date,
      metadata: metadata ?? self.metadata)
  }
}
