#if Keyring
internal import CofferCore
internal import Glibc

/// Where the session bus is. It is looked for, and never started.
enum BusAddress {
  /// The address in `DBUS_SESSION_BUS_ADDRESS`; else that of the socket which systemd makes for a user,
  /// `bus` in `XDG_RUNTIME_DIR` or in `/run/user/UID`, if it belongs to this user.
  static func find(in environment: [String: String]) throws(SecretError) -> String {
    if let given = environment["DBUS_SESSION_BUS_ADDRESS"], !given.isEmpty {
      return try checked(given)
    }
    var directory = environment["XDG_RUNTIME_DIR"] ?? ""
    if directory.isEmpty { directory = "/run/user/\(getuid())" }
    let path = directory + "/bus"
    var status = stat()
    guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else {
      throw SecretError(
        .unavailable,
        "There is no session bus: DBUS_SESSION_BUS_ADDRESS is not set, and there is no socket \(path).",
        advice: "Log in to a desktop session, or use a vault: run secret init."
      )
    }
    guard status.st_uid == geteuid() else {
      throw SecretError(
        .denied,
        "The session bus at \(path) belongs to another user.",
        advice: "Set XDG_RUNTIME_DIR to your own directory."
      )
    }
    return BusConnection.address(ofSocket: path)
  }

  private static func checked(_ given: String) throws(SecretError) -> String {
    // An address may be a list of alternatives. One that starts a bus is none.
    let addresses = given.split(separator: ";").filter { !$0.hasPrefix("autolaunch:") }
    if addresses.isEmpty {
      throw SecretError(
        .unavailable,
        "There is no session bus: DBUS_SESSION_BUS_ADDRESS only says to start one.",
        advice: "Log in to a desktop session, or use a vault: run secret init."
      )
    }
    let address = addresses.joined(separator: ";")
    guard !address.utf8.contains(0), BusConnection.supports(address) else {
      throw SecretError(
        .configuration,
        "DBUS_SESSION_BUS_ADDRESS is not the address of a bus.",
        advice: "Correct it, or unset it."
      )
    }
    return address
  }
}
#endif
