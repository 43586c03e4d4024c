internal import Coffer
internal import FoundationEssentials
internal import Glibc

/// The variables that the tool itself reads. What opens a vault is read by the library.
enum Environment {
  /// A variable's value; empty counts as unset, as it does everywhere in Coffer.
  static func value(_ name: String) -> String? {
    guard let value = getenv(name), value.pointee != 0 else { return nil }
    return String(cString: value)
  }

  /// All of it, but for what opens a vault: for what starts other programs' parts.
  static var all: [String: String] {
    ProcessInfo.processInfo.environment.filter { !CofferConfiguration.keyVariables.contains($0.key) }
  }
}
