#if Keyring
internal import CLibsecret
internal import CofferCore
internal import CofferSystem
internal import CofferLibc

/// The address of a session bus that already runs. Nothing here starts a bus.
enum BusAddress {
  /// Returns the address in `DBUS_SESSION_BUS_ADDRESS`. If the variable is unset or empty, returns the address of
  /// systemd's socket for this user: `bus` in `XDG_RUNTIME_DIR`, or in `/run/user/UID`.
  ///
  /// Throws `.unavailable` if there is no address, `.denied` if the socket belongs to another user, and
  /// `.configuration` if GDBus does not support the address.
  static func find(in environment: [String: String]) throws(ServiceFailure) -> String {
    if let address = environment["DBUS_SESSION_BUS_ADDRESS"], !address.isEmpty { return try supported(address) }
    let directory = BaseDirectories { environment[$0] }.given("XDG_RUNTIME_DIR")
    let path = (directory ?? "/run/user/\(getuid())") + "/bus"
    var status = stat()
    guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else {
      throw missing("DBUS_SESSION_BUS_ADDRESS is not set, and \(path) is not a socket")
    }
    guard status.st_uid == geteuid() else {
      throw .error(
        .denied, "The session bus at \(path) belongs to another user.",
        advice: "Set XDG_RUNTIME_DIR to a directory of this user.")
    }
    return BusConnection.address(ofSocket: path)
  }

  /// Returns the alternatives in `list` without `autolaunch:`, which would start a bus.
  private static func supported(_ list: String) throws(ServiceFailure) -> String {
    let addresses = list.split(separator: ";").filter { !$0.hasPrefix("autolaunch:") }
    if addresses.isEmpty { throw missing("DBUS_SESSION_BUS_ADDRESS contains only autolaunch addresses") }
    let address = addresses.joined(separator: ";")
    guard !address.utf8.contains(0), g_dbus_is_supported_address(address, nil) != 0 else {
      throw .error(
        .configuration, "DBUS_SESSION_BUS_ADDRESS is not a valid D-Bus address.",
        advice: "Correct the variable, or unset it.")
    }
    return address
  }

  private static func missing(_ reason: String) -> ServiceFailure {
    .error(.unavailable, "There is no session bus: \(reason).", advice: "Log in to a desktop session, or use a vault.")
  }
}
#endif
