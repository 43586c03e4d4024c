internal import Coffer
internal import FoundationEssentials

/// A secret's identifier and metadata as JSON, without the fields that are not set.
struct ItemDescription: Encodable {
  let service: String
  let account: String
  private(set) var label: String?
  private(set) var created: Date?
  private(set) var modified: Date?
  private(set) var expires: Date?
  /// When the secret was removed. `nil` for a secret that exists.
  private(set) var removed: Date?
  /// `nil` for a removed secret.
  private(set) var attributes: [String: String]?

  init(_ item: SecretItem) {
    service = item.identifier.service
    account = item.identifier.account
    label = item.metadata.label
    created = item.metadata.created
    modified = item.metadata.modified
    expires = item.metadata.expires
    attributes = item.metadata.attributes
  }

  init(_ secret: RemovedSecret) {
    service = secret.identifier.service
    account = secret.identifier.account
    removed = secret.removed
  }
}
