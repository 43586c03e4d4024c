internal import Coffer
internal import FoundationEssentials

/// A secret's identifier and metadata as JSON, without the fields that are not set.
struct ItemDescription: Encodable {
  let service: String
  let account: String
  let label: String?
  let created: Date?
  let modified: Date?
  let expires: Date?
  /// When the secret was removed. `nil` for a secret that exists.
  let removed: Date?
  /// `nil` for a removed secret.
  let attributes: [String: String]?

  init(_ item: SecretItem) {
    service = item.identifier.service
    account = item.identifier.account
    label = item.metadata.label
    created = item.metadata.created
    modified = item.metadata.modified
    expires = item.metadata.expires
    removed = nil
    attributes = item.metadata.attributes
  }

  init(_ secret: RemovedSecret) {
    service = secret.identifier.service
    account = secret.identifier.account
    removed = secret.removed
    (label, created, modified, expires, attributes) = (nil, nil, nil, nil, nil)
  }
}
