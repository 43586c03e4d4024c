package import CofferCore
internal import Glibc

/// The directories of the XDG Base Directory Specification, by a given environment.
package struct BaseDirectories: Sendable {
  /// A base directory, named by its variable.
  package enum Kind: String, Sendable {
    case data = "XDG_DATA_HOME"
    case configuration = "XDG_CONFIG_HOME"
    case state = "XDG_STATE_HOME"

    /// The place in the home directory if the variable is unset.
    fileprivate var fallback: String {
      switch self {
      case .data: ".local/share"
      case .configuration: ".config"
      case .state: ".local/state"
      }
    }
  }

  private let environment: @Sendable (String) -> String?
  private let user: uid_t
  /// The home directory: `HOME`, or the entry of the effective user in `/etc/passwd`.
  ///
  /// Root does not use a `HOME` that belongs to another user, which some configurations of sudo keep: that user could
  /// put links in it, and could not write to what root creates there.
  package let home: String?

  /// `environment` returns the value of a variable. `user` is the effective user.
  package init(user: UInt32 = geteuid(), environment: @escaping @Sendable (String) -> String?) {
    self.user = user
    self.environment = environment
    home = Self.home(of: user, Self.absolute(environment("HOME")))
  }

  /// The path of a base directory. The specification has relative paths in its variables ignored.
  ///
  /// If the user has no home directory, the path is below `/nonexistent`, which Debian uses for such users;
  /// ``requireHome(for:)`` throws then.
  package func path(_ kind: Kind) -> String {
    named(kind) ?? (home ?? "/nonexistent") + "/" + kind.fallback
  }

  /// The path that the variable of `kind` gives, or `nil` if the home directory decides.
  package func named(_ kind: Kind) -> String? { Self.absolute(environment(kind.rawValue)) }

  private static func home(of user: uid_t, _ given: String?) -> String? {
    if let given, user != 0 || FileStatus(of: given).map({ $0.owner == 0 }) ?? true { return given }
    // Not getpwuid_r: in a static executable it loads the machine's own name services and crashes in them.
    guard let file = fopen("/etc/passwd", "re") else { return nil }
    defer { fclose(file) }
    var entry = passwd()
    var found: UnsafeMutablePointer<passwd>?
    var buffer = [CChar](repeating: 0, count: 16_384)
    repeat {
      guard fgetpwent_r(file, &entry, &buffer, buffer.count, &found) == 0, found != nil else { return nil }
    } while entry.pw_uid != user
    return absolute(entry.pw_dir.map { String(cString: $0) })
  }

  /// Throws `.configuration` if neither `variable` nor the home directory gives a path.
  package func requireHome(for kind: Kind) throws(SecretError) {
    if named(kind) != nil || home != nil { return }
    throw SecretError(
      .configuration,
      Self.absolute(environment("HOME")) == nil
        ? "HOME is not set, and the user with the id \(user) has no home directory."
        : "HOME belongs to another user, and root has no home directory.",
      advice: "Set HOME or \(kind.rawValue) to an absolute path.")
  }

  private static func absolute(_ path: String?) -> String? {
    guard let path, path.utf8.first == UInt8(ascii: "/") else { return nil }
    return path
  }
}
