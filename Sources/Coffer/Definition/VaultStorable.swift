public import CofferCore
public import FoundationEssentials

/// The definition of a stored value: where it is kept, its default, its form, and the steps from its earlier versions.
///
/// ```swift
/// struct UserSettingsStorage: VaultStorable {
///   static let key = "user-settings"
///   static let defaultValue = UserSettings(theme: "light", fontSize: 16)
///   static let storage = SecretScope(service: "com.example.app")
///
///   static func configure(builder: DataMigrator<UserSettings>.Builder) {
///     builder.register(from: UserSettingsV1.self, to: UserSettings.self) { old in
///       UserSettings(theme: old.theme, fontSize: 16)
///     }
///   }
/// }
///
/// @VaultStored(UserSettingsStorage.self) var settings
/// ```
///
/// The members are read once for each ``VaultStored``, when it is created. A definition without steps has one version.
///
/// ## Versions
///
/// The version of a stored value is the attribute `coffer.version` of its metadata. The bytes contain only the value,
/// so that other programs can read them, and the version is never guessed from the bytes. A secret without the
/// attribute is the first version: it was stored by another program, or before the definition had versions.
///
/// A program that replaces the bytes and keeps the metadata, such as the tool, does not change the version. In a
/// keyring, a program can also remove the attribute, as `secret-tool store` does. The value then counts as the first
/// version. If it does not decode as that version, reads throw `.decodingFailed` and change nothing, until a new value
/// is stored. `secret info` prints the attribute.
///
/// In a backend that does not keep the attribute, a change of a value with steps throws `.unsupported`. If such a
/// backend has no transactions, Coffer detects this only after the store, and then puts back the old value and its
/// metadata. A crash or a failure between the two leaves the new value, which is then read as the first version.
public protocol VaultStorable {
  /// The type of the value in its current version.
  associatedtype Value: Codable & Equatable & Sendable

  /// The secret's account. It has no default, because two types in a program may have the same name.
  static var key: String { get }

  /// The value that a read returns if nothing is stored. It is not stored itself.
  static var defaultValue: Value { get }

  /// The service and the backend of the value. The default is the name of the executable, and ``DefaultBackend``.
  /// Specify the service, so that the executable can be renamed.
  static var storage: SecretScope { get }

  /// The label as in ``SecurelyStoredValue/init(key:in:service:backend:coder:label:history:)``. The default is none.
  static var label: String? { get }

  /// The history as in ``SecurelyStoredValue/init(key:in:service:backend:coder:label:history:)``. The default is none.
  static var history: History { get }

  /// The encoder of values that are stored as JSON. Text, data and the other types that ``StandardSecretCoder`` names
  /// are not stored as JSON.
  static var encoder: JSONEncoder { get }

  /// The decoder of values, of every version, that are stored as JSON.
  static var decoder: JSONDecoder { get }

  /// Registers the steps between the versions. The default registers none.
  static func configure(builder: DataMigrator<Value>.Builder)
}

extension VaultStorable {
  /// The name of the executable, and ``DefaultBackend``.
  public static var storage: SecretScope { SecretScope(service: Executable.name) }

  /// `nil`
  public static var label: String? { nil }

  /// No history.
  public static var history: History { .none }

  /// An encoder with sorted keys.
  public static var encoder: JSONEncoder { StandardSecretCoder.jsonEncoder }

  /// A decoder with Foundation's defaults.
  public static var decoder: JSONDecoder { JSONDecoder() }

  /// Registers no step: the value has one version.
  public static func configure(builder: DataMigrator<Value>.Builder) {}
}
