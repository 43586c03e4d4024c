internal import Coffer

extension SecretItem {
  /// The identifier and the metadata, for output.
  var json: JSONObject {
    [
      "service": identifier.service, "account": identifier.account, "label": metadata.label,
      "created": metadata.created, "modified": metadata.modified, "expires": metadata.expires,
      "attributes": metadata.attributes,
    ]
  }
}

extension RemovedSecret {
  var json: JSONObject {
    ["service": identifier.service, "account": identifier.account, "removed": removed]
  }
}
