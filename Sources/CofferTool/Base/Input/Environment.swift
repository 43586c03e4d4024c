internal import CEarlyInit
internal import Coffer
internal import CofferSystem
internal import CofferLibc

/// The environment variables that the tool reads itself. The library reads the variables that open a vault.
enum Environment {
  /// Moves the variables that open a vault from the environment to the configuration of this process.
  ///
  /// Root's processes can read `/proc/PID/environ` of this process, which shows the memory of its environment. The
  /// child of `run --redact` is one of them, if root runs it.
  static func concealKeys() {
    _ = BackendConfiguration.current()
    for variable in BackendConfiguration.keyVariables { coffer_conceal(variable) }
  }

  /// The value of a variable, or `nil` if it is unset or empty.
  static func value(_ name: String) -> String? {
    guard let value = getenv(name), value.pointee != 0 else { return nil }
    return String(cString: value)
  }

  /// Tells root which of `variables` are not used, by the rule of `BaseDirectories`.
  static func noteIgnored(_ variables: [String] = BaseDirectories.Kind.allCases.map(\.rawValue)) {
    let configuration = BackendConfiguration.current()
    for name in variables
    where value(name)?.hasPrefix("/") == true && !configuration.uses(directoryOf: name) {
      note("secret: \(name) is not used, because other users can change what is in the directory.")
    }
  }
}
