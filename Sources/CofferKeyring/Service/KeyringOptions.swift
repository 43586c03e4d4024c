#if Keyring
public import FoundationEssentials

/// Timeouts, prompts and the collection of a ``KeyringBackend``.
public struct KeyringOptions: Sendable {
  /// The time that one method of the backend has. 20 seconds by default. The method has 50 milliseconds more for each
  /// answer that it needs. The time in which a person answers a prompt does not count.
  ///
  /// A quarter of it is the time in which the bus and the service must be reached, and half of it the time in which the
  /// service must answer one call on D-Bus.
  public var timeout = Duration.seconds(20)
  /// The time in which the bus and the service must be reached and an encrypted session opened.
  package var connectTimeout: Duration {
    get { connect ?? timeout / 4 }
    set { connect = newValue }
  }
  /// The time in which the service must answer one call on D-Bus. A store waits at most this long for a store of
  /// another process, and then continues.
  package var callTimeout: Duration {
    get { call ?? timeout / 2 }
    set { call = newValue }
  }
  private var connect: Duration?, call: Duration?
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
