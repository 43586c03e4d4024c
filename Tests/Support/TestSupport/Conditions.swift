internal import Foundation
package import Testing

/// Variables that `Scripts/test` sets. Without them, `swift test` leaves out nothing.
package enum TestRun {
  /// `COFFER_SHORT_TESTS`: tests that take long are left out, or try a part of their cases.
  package static let isShort = ProcessInfo.processInfo.environment["COFFER_SHORT_TESTS"] != nil
  /// `COFFER_UNIT_TESTS`: tests that need programs that are not installed are left out.
  package static let isUnit = ProcessInfo.processInfo.environment["COFFER_UNIT_TESTS"] != nil

  /// The first of `programs` that is not installed. An absolute path may name any file.
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
  /// Skipped by `Scripts/test` without `--all`: the test takes more than five seconds of a processor.
  package static var long: Self {
    .disabled(if: TestRun.isShort, "Only Scripts/test --all runs long tests.")
  }

  /// Skipped by `Scripts/test --unit` if one of the programs is not installed.
  package static func needs(_ programs: String...) -> Self {
    let missing = TestRun.isUnit ? TestRun.firstMissing(programs) : nil
    return .enabled(if: missing == nil, "\(missing ?? "Nothing") is not installed: run Scripts/setup tests.")
  }
}
