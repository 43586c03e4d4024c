internal import Coffer

extension SecretTransaction {
  /// Stores a secret, unless it has this value and this metadata already. Otherwise a program that repeats its calls
  /// would push earlier versions out of the history. The end of the transaction makes sure that the secret is on disk.
  ///
  /// `metadata` returns the metadata to store. It gets the existing metadata, and whether the value is new.
  func storeIfChanged(
    _ value: SecretBytes, for identifier: SecretIdentifier, history: History = .unchanged,
    metadata: (SecretMetadata?, Bool) -> SecretMetadata
  ) throws(SecretError) {
    let existing = try item(identifier)?.metadata
    var isSame = false
    if existing != nil {
      do throws(SecretError) { isSame = try lookUp(identifier)?.isEqual(to: value) ?? false } catch
        where error.code == .tampered
      {}  // a damaged value is replaced
    }
    let wanted = metadata(existing, !isSame)
    if isSame && wanted == existing && history == .unchanged { return }
    try store(value, for: identifier, metadata: .replace(wanted), history: history)
  }

  /// Stores a secret, unless it has this value already. A new value keeps the label and the attributes.
  func storeIfChanged(_ value: SecretBytes, for identifier: SecretIdentifier) throws(SecretError) {
    try storeIfChanged(value, for: identifier) { existing, isNewValue in
      var metadata = existing ?? SecretMetadata()
      if isNewValue { metadata.expires = nil }
      return metadata
    }
  }
}

extension SecretBackend {
  /// Stores a secret in a transaction, unless it already has this value.
  func storeIfChanged(_ value: SecretBytes, for identifier: SecretIdentifier) throws(SecretError) {
    try withTransaction { transaction throws(SecretError) in
      try transaction.storeIfChanged(value, for: identifier)
    }
  }
}
