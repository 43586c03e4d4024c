import CofferTestSupport
import Foundation
import Testing

/// The flags with which `swiftc` compiles code that imports the modules of this build.
enum LibraryFlags {
  private static let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../..")
    .standardized
  /// The directory of this build: the modules are beside the test's own program.
  private static let build = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()

  static func current() throws -> [String] {
    var flags = ["-parse-as-library", "-I", build.appending(path: "Modules").path()]
    for module in ["CSodium", "CLibsecret", "CLinux/include"] {
      flags += ["-Xcc", "-fmodule-map-file=\(root.path())Sources/\(module)/module.modulemap"]
    }
    #if Keyring
    let result = try ChildProcess.run(
      ["pkg-config", "--cflags-only-I", "gobject-2.0"], environment: ProcessInfo.processInfo.environment)
    #expect(result.status == 0, "pkg-config does not find gobject-2.0: \(result.errorText)")
    for flag in result.outputText.split(whereSeparator: \.isWhitespace) { flags += ["-Xcc", String(flag)] }
    #endif
    return flags
  }

  /// What the compiler says to `code`. Empty: it compiles without a warning.
  static func diagnostics(of code: String) throws -> String {
    let directory = try TemporaryDirectory()
    let file = try directory.write(code, to: "Code.swift")
    let result = try ChildProcess.run(
      ["swiftc", "-typecheck", "-swift-version", "6"] + current() + [file],
      environment: ProcessInfo.processInfo.environment)
    return result.outputText + result.errorText
  }
}
