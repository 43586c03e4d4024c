#if Keyring
internal import CofferCore

/// Why a call to the service failed, as the bridge needs it to decide what to do next.
///
/// Of a remote error only the name is kept: its message is the service's to write, and might quote
/// anything.
enum ServiceFailure: Error {
  /// The bus or the service went away; a new connection may help.
  case lost(String)
  /// The service answered with the D-Bus error of this name.
  case remote(String)
  /// No answer within so many seconds.
  case timedOut(Double)
  /// The service's answer is not one to what was asked.
  case malformed
  /// The call could not be made.
  case failed(String)
  /// Already put into words.
  case secret(SecretError)
}

extension ServiceFailure {
  /// That the object which was asked is not there, such as an item that was removed meanwhile.
  var isNoSuchObject: Bool {
    guard case .remote(let name) = self else { return false }
    return name == "org.freedesktop.Secret.Error.NoSuchObject"
      || name == "org.freedesktop.DBus.Error.UnknownObject"
      || name == "org.freedesktop.DBus.Error.UnknownMethod"
  }

  /// That the object is locked.
  var isLocked: Bool {
    guard case .remote(let name) = self else { return false }
    return name == "org.freedesktop.Secret.Error.IsLocked"
  }

  /// In words, for the caller of the backend.
  var secretError: SecretError {
    switch self {
    case .secret(let error): error
    case .lost(let reason):
      SecretError(
        .unavailable,
        "The keyring cannot be reached: \(reason).",
        advice: "Log in to the desktop again, or start gnome-keyring-daemon."
      )
    case .timedOut(let seconds):
      SecretError(
        .timedOut,
        "The keyring did not answer within \(seconds) seconds.",
        advice: "Try again, or restart the keyring's daemon."
      )
    case .malformed:
      SecretError(
        .io,
        "The keyring gave an answer that makes no sense.",
        advice: "Check which program provides org.freedesktop.secrets on the session bus."
      )
    case .failed(let reason):
      SecretError(
        .unavailable,
        "The keyring cannot be reached: \(reason).",
        advice: "Check DBUS_SESSION_BUS_ADDRESS and that the session bus is running."
      )
    case .remote("org.freedesktop.Secret.Error.IsLocked"):
      SecretError(.locked, "The keyring is locked.", advice: "Unlock it, then try again.")
    case .remote("org.freedesktop.DBus.Error.AccessDenied"):
      SecretError(
        .denied,
        "The session bus does not let this program use the keyring.",
        advice: "Check the bus's policy, or the sandbox's permissions."
      )
    case .remote("org.freedesktop.DBus.Error.LimitsExceeded"):
      SecretError(
        .tooLarge,
        "The message is larger than the session bus lets through.",
        advice: "Keep large data in a file, and its key here."
      )
    case .remote(let name):
      SecretError(
        .io,
        "The keyring refused with the error \(name).",
        advice: "See the log of the keyring's daemon, and whether its disk is full."
      )
    }
  }
}
#endif
