#if Keyring
internal import CLibsecret
internal import CofferCore

/// The failure of a call to the Secret Service. There is one case for each way in which this module continues.
///
/// If a call that carries a secret is answered by a D-Bus error, only the name of the error is kept: its message might
/// quote the secret.
enum ServiceFailure: Error {
  /// The bus or the service went away. A new connection may succeed.
  case lost(String)
  /// The service answered with the D-Bus error of this name, and gave this reason.
  case remote(String, reason: String? = nil)
  /// No answer arrived within the timeout, or only some of the expected answers.
  case timedOut(Duration, answers: Int = 0, of: Int = 1)
  /// The answer does not have the type that the protocol requires.
  case malformed
  /// A call that transfers a secret failed. A new session may succeed: in one of a hundred sessions of KWallet, the key
  /// does not decrypt.
  indirect case session(ServiceFailure)
  /// GLib could not make the call.
  case failed(String)
  /// The error that the caller of the backend gets. No further attempt is made.
  case error(SecretError)

  static let locked = error(
    .locked, "The keyring is locked, and prompts are not allowed.",
    advice: "Unlock the keyring in the desktop session, or allow prompts.")

  static func error(
    _ code: SecretError.Code, _ reason: String, advice: String, effect: SecretError.Effect = .none
  ) -> ServiceFailure {
    .error(SecretError(code, reason, advice: advice, effect: effect))
  }

  /// The name of the D-Bus error with which the other side answered, or `nil` if this is another failure.
  private var remoteName: String? { if case .remote(let name, _) = self { name } else { nil } }

  /// Whether the object does not exist, for example because another program removed the item.
  var isNoSuchObject: Bool {
    [
      "org.freedesktop.Secret.Error.NoSuchObject", "org.freedesktop.DBus.Error.UnknownObject",
      "org.freedesktop.DBus.Error.UnknownMethod",
    ].contains(remoteName)
  }

  /// Whether a call that transfers a secret may succeed in another session.
  var mayBeOfSession: Bool {
    switch self {
    case .malformed: true
    case .remote(let name, _):
      !isNoSuchObject && !isLocked
        && !["AccessDenied", "LimitsExceeded"].contains { name == "org.freedesktop.DBus.Error.\($0)" }
    default: false
    }
  }

  var isRemote: Bool { remoteName != nil }

  /// Whether a new connection, or a new session on it, may succeed.
  var mayPassWithNewConnection: Bool {
    switch self {
    case .lost, .session: true
    default: false
    }
  }

  /// This failure without the words of the service.
  var withoutReason: ServiceFailure { remoteName.map { .remote($0) } ?? self }

  /// An error quotes at most this many characters of the reason that a service gives.
  private static let longestReason = 200

  /// A reason in one line without control characters, in quotation marks.
  private static func quoted(_ reason: String?) -> String {
    let scalars = (reason ?? "").unicodeScalars.prefix(longestReason)
      .map { $0.properties.generalCategory == .control ? " " : Character($0) }
    return scalars.isEmpty ? "" : ": “\(String(scalars))”"
  }

  var isLocked: Bool { remoteName == "org.freedesktop.Secret.Error.IsLocked" }

  var secretError: SecretError {
    switch self {
    case .error(let error): error
    case .session(let failure): failure.secretError
    case .lost(let reason):
      SecretError(
        .unavailable, "The keyring cannot be reached: \(reason).",
        advice: "Log in to the desktop session again.", effect: .unknown)
    case .timedOut(let timeout, let answers, let count):
      SecretError(
        .timedOut,
        answers == 0
          ? "The keyring did not answer within \(timeout.rounded)."
          : "The keyring gave \(answers) of \(count) answers within \(timeout.rounded).",
        advice: "Try again, or restart the keyring's daemon.", effect: .unknown)
    case .malformed:
      SecretError(
        .io, "The keyring's answer does not follow the Secret Service protocol.",
        advice: "Check which program provides org.freedesktop.secrets on the session bus.", effect: .unknown)
    case .failed(let reason):
      SecretError(
        .unavailable, "The keyring cannot be reached: \(reason).",
        advice: "Check DBUS_SESSION_BUS_ADDRESS, and that the session bus is running.")
    case .remote("org.freedesktop.Secret.Error.IsLocked", _):
      SecretError(.locked, "The keyring is locked.", advice: "Unlock it, then try again.")
    case .remote("org.freedesktop.DBus.Error.AccessDenied", _):
      SecretError(
        .denied, "The session bus does not let this program use the keyring.",
        advice: "Check the policy of the bus, or the permissions of the sandbox.")
    case .remote("org.freedesktop.DBus.Error.LimitsExceeded", _):
      SecretError(
        .tooLarge, "The message exceeds the session bus's size limit.",
        advice: "Store the data in an encrypted file, and only the file's key in the keyring.")
    case .remote(let name, let reason):
      SecretError(
        .io, "The keyring returned the error \(name)\(Self.quoted(reason)).",
        advice: "Check the log of the keyring's daemon, and whether the disk is full.", effect: .unknown)
    }
  }
}

extension DeadlineLock {
  /// Runs `body` with the lock held. If the lock is not free within `timeout`, throws `.error`.
  func withLock<R>(_ timeout: Duration, _ body: () throws(ServiceFailure) -> R) throws(ServiceFailure) -> R {
    let result: Result<R, ServiceFailure>
    do throws(SecretError) { result = try withLock(timeout: timeout) { Result(catching: body) } } catch {
      throw .error(error)
    }
    return try result.get()
  }
}

extension ServiceFailure {
  /// Takes over and frees `error`, which a call with this deadline has set. Without a deadline, the time in `.timedOut`
  /// is 0, and the caller replaces it.
  init(consuming error: UnsafeMutablePointer<GError>?, _ deadline: Deadline? = nil) {
    guard let error else {
      self = .failed("GLib reported no reason")
      return
    }
    defer { g_error_free(error) }
    // libsecret removes the name of a remote error. GLib can restore only a standard name, from the code.
    var name = g_dbus_error_get_remote_error(error)
    if name == nil, error.pointee.domain == g_dbus_error_quark() { name = g_dbus_error_encode_gerror(error) }
    defer { g_free(name) }
    g_dbus_error_strip_remote_error(error)
    let message = error.pointee.message.map { String(cString: $0) }
    if let name {
      self = Self.remote(named: String(cString: name), message)
      return
    }
    let code = GIOErrorEnum(rawValue: UInt32(bitPattern: error.pointee.code))
    switch error.pointee.domain == g_io_error_quark() ? code : nil {
    case G_IO_ERROR_DBUS_ERROR: self = .malformed
    case G_IO_ERROR_TIMED_OUT, G_IO_ERROR_CANCELLED: self = deadline?.failure ?? .timedOut(.zero)
    case G_IO_ERROR_CLOSED, G_IO_ERROR_BROKEN_PIPE: self = .busClosed
    default: self = .failed(message ?? "GLib reported no reason")
    }
  }

  static let busClosed = lost("the connection to the session bus was closed")

  private static func remote(named name: String, _ reason: String?) -> ServiceFailure {
    switch name {
    case "org.freedesktop.DBus.Error.NoReply", "org.freedesktop.DBus.Error.Disconnected":
      // The bus sends these if the service disconnects before it answers.
      .lost("the Secret Service stopped during the call")
    case "org.freedesktop.DBus.Error.NameHasNoOwner", "org.freedesktop.DBus.Error.ServiceUnknown":
      .lost("the Secret Service is no longer running")
    case "org.freedesktop.Secret.Error.NoSession": .session(.remote(name))
    default: .remote(name, reason: reason)
    }
  }
}
#endif
