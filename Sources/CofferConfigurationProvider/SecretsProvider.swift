#if SwiftConfiguration
public import Coffer
internal import CofferCore
public import Configuration

/// The secrets of one service as configuration values.
///
/// ```swift
/// let config = ConfigReader(providers: [
///   SecretsProvider(in: SecretScope(service: "com.example.server")),
///   EnvironmentVariablesProvider(),
/// ])
/// let token = try config.requiredString(forKey: "api.token")
/// ```
///
/// **Keys.** The account of a secret is the key as it is written: its components, joined by `separator`. The key
/// `api.token` is the secret that `secret -s com.example.server set api.token` stores. With the separator `-`, it is
/// the secret `api-token`. The context of a key is ignored.
///
/// **Values.** Every value is marked as secret. Its bytes are decoded as by `StandardSecretCoder`, so a value that
/// `@SecurelyStoredValue` has stored is read as that type. Strings and bytes are read as they are, without trimming. An
/// integer, a floating-point number or a Boolean is its text. An array is JSON: `["a","b"]`, `[1,2]`; an array of byte
/// chunks contains them in Base64.
///
/// **Errors.** A missing secret is no value, so that a reader asks its next provider. Every other failure throws a
/// `SecretError`: a locked or unreachable store, `.decodingFailed` for bytes that are not of the type, and
/// `.invalidIdentifier` for an empty key. No error contains a value. The methods of a reader that do not throw return
/// `nil` or the default in these cases.
///
/// **Freshness.** Nothing is cached. A value is read from the store at each call, and a snapshot reads all secrets of
/// the service when it is made. The watching methods yield the current state first, and then each change by this
/// process or another one. While the store is locked, they yield nothing. With a backend that does not report changes,
/// they yield only the current state.
///
/// Reads never show a prompt, except by `fetch`: they throw `.locked` instead. The values that a reader returns are
/// ordinary strings outside guarded memory. Thread-safe.
public struct SecretsProvider: ConfigProvider {
  let source: SecretSource

  /// Creates a provider of the secrets in the service of `scope`. Nothing is read. Without a backend in `scope`, the
  /// provider asks for `DefaultBackend` at each call; a watch stays with the backend with which it began.
  public init(in scope: SecretScope, separator: String = ".") {
    source = SecretSource(scope: scope, separator: separator)
  }

  /// `SecretsProvider[SERVICE]`.
  public var providerName: String { source.name }

  /// Reads the secret. Blocks the thread while it reads the store; a vault is a local file. Throws the errors that are
  /// listed for the type.
  public func value(forKey key: AbsoluteConfigKey, type: ConfigType) throws -> LookupResult {
    try source.read(key, from: source.backend()).value(forKey: key, type: type)
  }

  /// Reads the secret outside the threads that run tasks. A keyring may show a prompt. Throws the errors that are
  /// listed for the type.
  public nonisolated(nonsending) func fetchValue(
    forKey key: AbsoluteConfigKey, type: ConfigType
  ) async throws -> LookupResult {
    let source = source
    let reading = await DefaultBackend.offPool {
      source.read(key, from: source.backend(), mayPrompt: true)
    }
    return try reading.value(forKey: key, type: type)
  }

  /// Calls `updatesHandler` with the current value and each later one that differs from the one before it.
  ///
  /// A failure is an element too, except if the store becomes locked. Throws what `updatesHandler` throws.
  public nonisolated(nonsending) func watchValue<Return: ~Copyable>(
    forKey key: AbsoluteConfigKey,
    type: ConfigType,
    updatesHandler:
      nonisolated(nonsending) (
        _ updates: ConfigUpdatesAsyncSequence<Result<LookupResult, any Error>, Never>
      ) async throws -> Return
  ) async throws -> Return {
    let updates = SecretWatch(of: source, key).stream { reading in
      Result { try reading.value(forKey: key, type: type) }
    }
    return try await updatesHandler(ConfigUpdatesAsyncSequence(updates))
  }

  /// Reads all secrets of the service; those of a vault as they are at one moment. Blocks the thread while it reads.
  ///
  /// A snapshot of a store that cannot be read throws the store's error for each value.
  public func snapshot() -> any ConfigSnapshot { source.read(nil, from: source.backend()) }

  /// Calls `updatesHandler` with the current snapshot and each later one that differs from the one before it. Throws
  /// what `updatesHandler` throws.
  public nonisolated(nonsending) func watchSnapshot<Return: ~Copyable>(
    updatesHandler:
      nonisolated(nonsending) (_ updates: ConfigUpdatesAsyncSequence<any ConfigSnapshot, Never>) async throws -> Return
  ) async throws -> Return {
    let updates = SecretWatch(of: source).stream { $0 as any ConfigSnapshot }
    return try await updatesHandler(ConfigUpdatesAsyncSequence(updates))
  }
}

extension SecretsProvider: CustomStringConvertible {
  /// The name of the provider.
  public var description: String { providerName }
}
#else
/// Unavailable, because the trait `SwiftConfiguration` is off.
@available(*, unavailable, message: "Enable the trait SwiftConfiguration of the package coffer.")
public struct SecretsProvider: Sendable { public init(in scope: Any, separator: String = ".") {} }
#endif
