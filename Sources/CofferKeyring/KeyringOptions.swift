#if Keyring
public import FoundationEssentials

/// How a ``KeyringBackend`` waits, whom it may ask, and where it stores.
public struct KeyringOptions: Sendable {
  /// Seconds for reaching the bus, the service, and an encrypted session with it, all together.
  public var connectDeadline = 5.0
  /// Seconds for one call to the service, once there is a session.
  public var callDeadline = 10.0
  /// Whether the service may show a prompt, such as for the keyring's password. Where it may not, what
  /// needs one throws `.locked` at once.
  public var mayPrompt: Bool
  /// Seconds to wait for a person at a prompt. `nil`: as long as it takes, or until
  /// ``KeyringBackend/cancelPrompts()``.
  public var promptDeadline: Double?
  /// The collection to use: an alias, such as `login`, or a label. `nil`: secrets are looked for in all
  /// collections, and new ones go to the one that the user made the default.
  public var collection: String?

  /// `mayPrompt` is whether `environment` says that a person is at a graphical session, by `DISPLAY` or
  /// `WAYLAND_DISPLAY`, and does not say `COFFER_NO_PROMPT`. A terminal is not enough: the service's
  /// prompts are windows.
  public init(environment: [String: String] = ProcessInfo.processInfo.environment) {
    func has(_ name: String) -> Bool { !(environment[name] ?? "").isEmpty }
    mayPrompt = (has("DISPLAY") || has("WAYLAND_DISPLAY")) && !has("COFFER_NO_PROMPT")
  }
}
#endif
