import CofferTestSupport
import Foundation
import Testing

/// What the README shows compiles.
@Suite struct ReadmeTests {
  private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()

  /// The Swift fences of the README, in order.
  private static func fences() throws -> [String] {
    let text = try String(contentsOf: root.appending(path: "README.md"), encoding: .utf8)
    return text.components(separatedBy: "```swift\n").dropFirst().map {
      $0.components(separatedBy: "\n```")[0]
    }
  }

  @Test func everySwiftFenceCompiles() throws {
    let fences = try Self.fences()
    #expect(fences.count >= 4)
    let directory = try TemporaryDirectory()
    // The modules of this very build lie beside the test's own program.
    let build = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
    let modules = build.appending(path: "Modules")
    var flags = ["-typecheck", "-swift-version", "6", "-parse-as-library", "-I", modules.path()]
    for module in ["CSodium", "CLibsecret", "CLinux/include"] {
      flags += ["-Xcc", "-fmodule-map-file=\(Self.root.path())Sources/\(module)/module.modulemap"]
    }
    #if Keyring
    let result = try Self.run(["pkg-config", "--cflags-only-I", "libsecret-1"])
    #expect(result.status == 0, "pkg-config does not know libsecret-1: \(result.errorText)")
    for flag in result.outputText.split(whereSeparator: \.isWhitespace) { flags += ["-Xcc", String(flag)] }
    #endif
    for (index, fence) in fences.enumerated() {
      let file = "\(directory.path)/Fence\(index).swift"
      try Data(fence.utf8).write(to: URL(filePath: file))
      let result = try Self.run(["swiftc"] + flags + [file])
      #expect(result.status == 0, "\(fence)\n\(result.outputText)\(result.errorText)")
    }
  }

  private static func run(_ command: [String]) throws -> ChildProcess.Result {
    try ChildProcess.run(command, environment: ProcessInfo.processInfo.environment)
  }
}
