#if Keyring
public import FoundationEssentials

/// Timeouts, prompts and the collection of a ``KeyringBackend``.
public struct KeyringOptions: Sendable {
  /// The time in which the bus and the service must be reached and an encrypted session opened. 5 seconds by default.
  public var connectTimeout = Duration.seconds(5)
  /// The time in which the service must answer one D-Bus call. 10 seconds by default. One method of the backend makes
  /// several calls. A store waits at most this long for a store of another process, and then continues.
  public var callTimeout = Duration.seconds(10)
  /// The time that one method of the backend has for all of its calls. 20 seconds by default. The method has 50
  /// milliseconds more for each answer that it needs. The time in which a person answers a prompt does not count.
  public var operationTimeout = Duration.seconds(20)
  /// Whether the service may show a prompt, for example for the keyring's password. If `false`, a method that would
  /// need a prompt throws `.locked`.
  public var mayPrompt: Bool
  /// The time in which a person must answer a prompt. `nil`, the default, waits until the prompt is answered or
  /// ``KeyringBackend/cancelPrompts()`` is called.
  public var promptTimeout: Duration?
  /// The collection to use: its alias, such as `login`, or its label. `nil`, the default, searches all collections and
  /// creates items in the default collection.
  public var collection: String?

  /// Creates options in which ``mayPrompt`` is `true` if `environment` has `DISPLAY` or `WAYLAND_DISPLAY`, and does not
  /// have `COFFER_NO_PROMPT`. An empty variable counts as unset. A terminal is not enough, because the service's
  /// prompts are windows.
  public init(environment: [String: String] = ProcessInfo.processInfo.environment) {
    func has(_ name: String) -> Bool { !(environment[name] ?? "").isEmpty }
    mayPrompt = (has("DISPLAY") || has("WAYLAND_DISPLAY")) && !has("COFFER_NO_PROMPT")
  }
}
#endif
