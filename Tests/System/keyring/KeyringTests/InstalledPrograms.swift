#if Keyring
import CofferTestSupport
import Foundation
import Testing

/// The programs that these tests run.
enum InstalledPrograms {
  static let searchPath = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"

  /// Python with the modules of the scripted service, or with those of Python's keyring.
  static let pythonWithDBus = Result {
    try python(importing: "dbus, dbus.mainloop.glib, gi.repository.GLib", package: "python3-dbusmock")
  }
  static let pythonWithKeyring = Result {
    try python(importing: "keyring, secretstorage", package: "python3-keyring")
  }

  private static func python(importing modules: String, package: String) throws -> String {
    for python in ["/usr/bin/python3", "python3"] {
      let result = try ChildProcess.run(
        [python, "-c", "import \(modules)"], package: "python3",
        environment: ProcessInfo.processInfo.environment)
      if result.status == 0 { return python }
    }
    throw TestFailure("These tests need Python's modules \(modules). Install the package \(package).")
  }

  fileprivate static let missing = ["dbus-daemon", "dbus-send", "gnome-keyring-daemon", "secret-tool"].filter {
    program in
    !searchPath.split(separator: ":").contains {
      FileManager.default.isExecutableFile(atPath: "\($0)/\(program)")
    }
  }
}

extension Trait where Self == ConditionTrait {
  /// Skips the tests if a program is missing. In CI they run and fail, so that no check is lost unnoticed.
  static var needsKeyring: Self {
    let missing = InstalledPrograms.missing.joined(separator: ", ")
    let isCI = ProcessInfo.processInfo.environment["CI"] != nil
    return .enabled(
      if: missing.isEmpty || isCI, "not installed: \(missing); Scripts/setup tests installs them")
  }
}
#endif
