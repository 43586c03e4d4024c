internal import Coffer
internal import FoundationEssentials
internal import Glibc

/// The environment variables that the tool reads itself. The library reads the variables that open a vault.
enum Environment {
  /// The value of a variable, or `nil` if it is unset or empty.
  static func value(_ name: String) -> String? {
    guard let value = getenv(name), value.pointee != 0 else { return nil }
    return String(cString: value)
  }

  /// Every variable except those that open a vault, for other programs.
  static var withoutKeys: [String: String] {
    ProcessInfo.processInfo.environment.filter { !CofferConfiguration.keyVariables.contains($0.key) }
  }
}
