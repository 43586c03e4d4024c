public import FoundationEssentials

extension Store where Item: Identifiable, Item.ID == UUID {
  /// Creates a store of items that are identified by the text of their `id`. Loads in the background.
  public convenience init(storage: SecretScope, coder: any SecretCoder = StandardSecretCoder()) {
    self.init(storage, coder) { $0.id.uuidString }
    loadInBackground()
  }

  /// Creates a store of items that are identified by the text of their `id`, and loads them. Throws the errors of the
  /// backend.
  public convenience init(storage: SecretScope, coder: any SecretCoder = StandardSecretCoder()) async throws {
    self.init(storage, coder) { $0.id.uuidString }
    try await itemsHaveLoaded()
  }
}
