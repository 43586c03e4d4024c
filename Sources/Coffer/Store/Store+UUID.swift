public import FoundationEssentials

extension Store where Item: Identifiable, Item.ID == UUID {
  /// Creates a store of items that are identified by the text of their `id`. Loads in the background.
  public convenience init(
    storage: SecretScope, coder: any SecretCoder = StandardSecretCoder(), history: History = .none
  ) {
    self.init(storage, coder, history) { $0.id.uuidString }
    loadInBackground()
  }

  /// Creates a store of items that are identified by the text of their `id`, and loads them. Throws the errors of the
  /// backend.
  public convenience init(
    storage: SecretScope, coder: any SecretCoder = StandardSecretCoder(), history: History = .none
  ) async throws(SecretError) {
    self.init(storage, coder, history) { $0.id.uuidString }
    try await itemsHaveLoaded()
  }
}
