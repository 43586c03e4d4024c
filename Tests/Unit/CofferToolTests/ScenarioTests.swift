import CofferTestSupport
import Foundation
import Testing

/// Every script in `Scenarios`, each in a private directory, with the built program. A file is named after its command
/// or subject. `COFFER_WITHOUT_SCENARIOS` lists the files to leave out.
@Suite struct ScenarioTests {
  private static let directory = (#filePath as NSString).deletingLastPathComponent + "/Scenarios"

  static func names() throws -> [String] {
    let leftOut = ProcessInfo.processInfo.environment["COFFER_WITHOUT_SCENARIOS"] ?? ""
    return try FileManager.default.contentsOfDirectory(atPath: directory)
      .filter { $0.hasSuffix(".txt") && !leftOut.split(whereSeparator: \.isWhitespace).contains($0[...]) }
      .sorted()
  }

  /// The first thing that the script needs and that is missing.
  private static func missing(_ scenario: Scenario) -> String? {
    #if !Keyring
    if scenario.needs.contains("Keyring") { return "the trait Keyring" }
    #endif
    guard TestRun.isUnit else { return nil }
    return TestRun.firstMissing(scenario.needs.filter { $0 != "Keyring" })
  }

  @Test(arguments: try names()) func scenario(_ name: String) throws {
    let text = try String(contentsOfFile: "\(Self.directory)/\(name)", encoding: .utf8)
    for scenario in try Scenario.parse(text) {
      if let missing = Self.missing(scenario) {
        print("Skipped \(name):\(scenario.steps.first?.line ?? 0): without \(missing).")
        continue
      }
      let sandbox = try Sandbox()
      for step in scenario.steps {
        let result = try sandbox.shell(step.command, input: Data(Scenario.text(step.input).utf8))
        let place: Comment =
          "\(name):\(step.line): \(step.command)\n\(result.outputText)\n\(result.errorText)"
        #expect(result.status == step.status, place)
        #expect(Scenario.matches(result.outputText, step.output, directory: sandbox.directory), place)
        #expect(Scenario.matches(result.errorText, step.errors, directory: sandbox.directory), place)
      }
    }
  }

  @Test func aMismatchIsDetected() {
    #expect(Scenario.matches("a\nb\n", ["a", "b"], directory: ""))
    #expect(Scenario.matches("a\nb\nc\n", ["...", "c"], directory: ""))
    #expect(Scenario.matches("abc", ["a*\\"], directory: ""))
    #expect(!Scenario.matches("a\nb\n", ["a"], directory: ""))
    #expect(!Scenario.matches("a\n", ["a\\"], directory: ""))
    #expect(!Scenario.matches("x", [], directory: ""))
    #expect(!Scenario.matches("", ["x"], directory: ""))
    #expect(!Scenario.matches("ab\n", ["a*c"], directory: ""))
  }
}
