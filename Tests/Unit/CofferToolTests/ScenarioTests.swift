import CofferTestSupport
import Foundation
import Testing

/// Every file in `Scenarios`, each in a private directory, with the built program. `COFFER_WITHOUT_SCENARIOS`
/// lists the files to leave out.
@Suite struct ScenarioTests {
  private static let directory = (#filePath as NSString).deletingLastPathComponent + "/Scenarios"

  static func names() throws -> [String] {
    let names = try FileManager.default.contentsOfDirectory(atPath: directory).filter { $0.hasSuffix(".txt") }
    var leftOut = Set(
      ProcessInfo.processInfo.environment["COFFER_WITHOUT_SCENARIOS"]?.split(whereSeparator: \.isWhitespace)
        ?? [])
    #if !Keyring
    // These expect messages of the keyring backend.
    leftOut.formUnion(["backend-keyring.txt", "doctor.txt", "key-change.txt"])
    #endif
    for name in names where UnitTests.areAlone {
      guard let missing = UnitTests.firstMissing(try parsed(name).programs) else { continue }
      print("Skipped \(name): \(missing) is not installed.")
      leftOut.insert(name[...])
    }
    return names.filter { !leftOut.contains($0[...]) }.sorted()
  }

  private static func parsed(_ name: String) throws -> Scenario {
    try Scenario(parsing: String(contentsOfFile: "\(directory)/\(name)", encoding: .utf8))
  }

  @Test(arguments: try names()) func scenario(_ name: String) throws {
    let sandbox = try Sandbox()
    for step in try Self.parsed(name).steps {
      let result = try sandbox.shell(step.command, input: Data(Scenario.text(step.input).utf8))
      let place: Comment = "\(name):\(step.line): \(step.command)\n\(result.outputText)\n\(result.errorText)"
      #expect(result.status == step.status, place)
      #expect(Scenario.matches(result.outputText, step.output, directory: sandbox.directory), place)
      #expect(Scenario.matches(result.errorText, step.errors, directory: sandbox.directory), place)
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
