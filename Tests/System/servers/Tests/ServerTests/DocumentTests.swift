import Foundation
import Testing

/// Code in the documents compiles, as in another package.
@Suite(.timeLimit(.minutes(30))) struct DocumentTests {
  private static let root = (0..<6).reduce(URL(filePath: #filePath)) { path, _ in
    path.deletingLastPathComponent()
  }
  /// The directory of this build: the modules are beside the test's own program.
  private static let build = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()

  @Test func fencesCompile() throws {
    let fences = try ["servers", "swift"].flatMap { page in
      let place = Self.root.appending(path: "Documentation/Recipes/\(page).md")
      let parts = try String(contentsOf: place, encoding: .utf8).components(separatedBy: "```swift compiled\n")
      return parts.dropFirst().map { $0.components(separatedBy: "\n```")[0] }
    }
    #expect(fences.count == 4)
    let directory = try TestDirectory()
    for fence in fences {
      let file = URL(filePath: directory.path + "/Fence.swift")
      try Data(fence.utf8).write(to: file)
      let compiler = Process()
      compiler.executableURL = URL(filePath: "/usr/bin/env")
      compiler.arguments =
        ["swiftc", "-typecheck", "-parse-as-library", "-swift-version", "6"]
        + ["-I", Self.build.appending(path: "Modules").path()] + Self.moduleMaps() + [file.path()]
      try compiler.run()
      compiler.waitUntilExit()
      #expect(compiler.terminationStatus == 0, "\(fence)")
    }
  }

  /// The C modules of Coffer and of the packages of this build.
  private static func moduleMaps() -> [String] {
    let package = root.appending(path: "Tests/System/servers")
    let places = [root.appending(path: "Sources"), package.appending(path: ".build/checkouts")]
    return places.flatMap { place in
      let files = FileManager.default.enumerator(at: place, includingPropertiesForKeys: nil)
      return (files?.allObjects ?? []).compactMap { $0 as? URL }.filter { $0.pathExtension == "modulemap" }
    }
    .flatMap { ["-Xcc", "-fmodule-map-file=\($0.path())"] }
  }
}
