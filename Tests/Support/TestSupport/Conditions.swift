internal import Foundation
package import Testing

/// `Scripts/test --unit` sets `COFFER_UNIT_TESTS`, which leaves out the tests that such a run has no time or no
/// programs for.
package enum UnitTests {
  package static let areAlone = ProcessInfo.processInfo.environment["COFFER_UNIT_TESTS"] != nil

  /// The first of `programs` that is not installed. An absolute path is any file.
  package static func firstMissing(_ programs: [String]) -> String? {
    let directories = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
    return programs.first { program in
      program.hasPrefix("/")
        ? !FileManager.default.fileExists(atPath: program)
        : !directories.contains { FileManager.default.isExecutableFile(atPath: "\($0)/\(program)") }
    }
  }
}

extension Trait where Self == ConditionTrait {
  /// Skipped by `Scripts/test --unit`: the test takes more than five seconds of a processor.
  package static var long: Self {
    .disabled(if: UnitTests.areAlone, "Scripts/test --unit leaves out long tests.")
  }

  /// Skipped by `Scripts/test --unit` if one of the programs is not installed.
  package static func needs(_ programs: String...) -> Self {
    let missing = UnitTests.areAlone ? UnitTests.firstMissing(programs) : nil
    return .enabled(if: missing == nil, "\(missing ?? "Nothing") is not installed: run Scripts/setup tests.")
  }
}
