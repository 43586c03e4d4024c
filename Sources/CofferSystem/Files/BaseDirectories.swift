package import CofferCore
internal import CofferLibc

/// The directories of the XDG Base Directory Specification in a given environment.
package struct BaseDirectories: Sendable {
  /// A base directory, named by its variable.
  package enum Kind: String, Sendable, CaseIterable {
    case data = "XDG_DATA_HOME"
    case configuration = "XDG_CONFIG_HOME"
    case state = "XDG_STATE_HOME"
    case cache = "XDG_CACHE_HOME"

    /// The path in the home directory if the variable is unset.
    fileprivate var fallback: String {
      switch self {
      case .data: ".local/share"
      case .configuration: ".config"
      case .state: ".local/state"
      case .cache: ".cache"
      }
    }
  }

  private let environment: @Sendable (String) -> String?
  private let user: uid_t
  /// The home directory: `HOME`, or the entry of the effective user in `/etc/passwd`.
  package private(set) var home: String?
  /// The results of ``given(_:)`` for `HOME` and each kind. They are kept, because for root each check examines every
  /// directory of the path.
  private var judged: [String: String?] = [:]

  /// `environment` returns the value of a variable. `user` is the effective user.
  package init(user: UInt32 = geteuid(), environment: @escaping @Sendable (String) -> String?) {
    self.user = user
    self.environment = environment
    for variable in ["HOME"] + Kind.allCases.map(\.rawValue) { judged[variable] = .some(given(variable)) }
    home = given("HOME") ?? Self.listedHome(of: user)
  }

  /// The absolute path in a variable, or `nil` if it cannot be used. Root does not use a path that another user
  /// controls, because that user could put links there, and could not write to what root creates there; `su` and sudo
  /// may keep the variable. Nor does root use a home directory to which everybody can write, such as /tmp.
  package func given(_ variable: String) -> String? {
    if let known = judged[variable] { return known }
    guard let path = Self.absolute(environment(variable)) else { return nil }
    if user != 0 { return isClosedByOthers(path) ? nil : path }
    let isShared = variable.hasSuffix("HOME") && (FileStatus(of: path)?.mode ?? 0) & 0o002 != 0
    return isShared || PathWalk.isInHandsOfOthers(path) ? nil : path
  }

  /// Whether the directory belongs to another user, and this user may not enter it. In a container that does not run as
  /// the user of its image, `HOME` may be such a directory, for example /root.
  private func isClosedByOthers(_ path: String) -> Bool {
    access(path, X_OK) != 0 && errno == EACCES && FileStatus(of: path)?.owner != user
  }

  /// The path of a base directory. If the user has no home directory, it is below `/nonexistent`, which Debian uses for
  /// such users, and ``requireHome(for:)`` throws.
  package func path(_ kind: Kind) -> String {
    named(kind) ?? (home ?? "/nonexistent") + "/" + kind.fallback
  }

  /// The path that the variable of `kind` gives, or `nil` if the home directory decides.
  package func named(_ kind: Kind) -> String? { given(kind.rawValue) }

  /// The home directory in `/etc/passwd`.
  private static func listedHome(of user: uid_t) -> String? {
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
        : "HOME cannot be used, because other users control it, and this user has no other home directory.",
      advice: "Set HOME or \(kind.rawValue) to an absolute path.")
  }

  private static func absolute(_ path: String?) -> String? {
    path.flatMap { $0.utf8.first == UInt8(ascii: "/") ? $0 : nil }
  }
}
