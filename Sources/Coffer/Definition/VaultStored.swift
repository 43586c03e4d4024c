/// A ``StoredValue`` with a definition. See ``VaultStorable``.
///
/// ```swift
/// @VaultStored(UserSettingsStorage.self) var settings
///
/// try $settings.set(\.theme, to: "dark")
/// try $settings.reset()                      // the default again
/// ```
public typealias VaultStored = StoredValue

extension StoredValue {
  /// Creates the value of a definition. Reads nothing; the backend is chosen and opened at the first use.
  ///
  /// - A stored value of an earlier version is converted by the definition's steps when it is read, and its current
  ///   form is stored in one step, which also changes the version. If another thread changes the value in that time,
  ///   its change is kept, and the read begins again. The same holds for other processes if the backend has
  ///   transactions. If the current form cannot be stored, for example on a read-only disk, the read still returns the
  ///   value, ``lastError`` is set, and the next read tries again.
  /// - A read throws `.migrationFailed` if a step fails, `.unsupportedVersion` if the value has a version that the
  ///   program does not read, and `.invalidMigration` if the definition's steps are not one chain, even if nothing is
  ///   stored. The stored value is unchanged.
  /// - `set(_:)` throws `.invalidMigration` too, and `.unsupported` if the definition has steps and the backend keeps
  ///   no attributes. It does not store a value that equals the stored one.
  public convenience init<Definition: VaultStorable>(_ definition: Definition.Type)
  where Definition.Value == Value {
    let (key, scope, versions) = (definition.key, definition.storage, DataMigrator(definition.configure))
    let coder = StandardSecretCoder(encoder: definition.encoder, decoder: definition.decoder)
    self.init(
      key, definition.defaultValue,
      TypedValue(
        key, scope, .init(coder, versions), definition.label, definition.history,
        definition: .init(version: versions.current, isSame: { $0 == $1 })))
  }
}
