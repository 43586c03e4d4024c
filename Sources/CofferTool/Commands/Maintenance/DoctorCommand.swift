internal import ArgumentParser

struct DoctorCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "doctor", abstract: "Print which backend is used and why, what is wrong, and what to do.",
    discussion: """
      Changes nothing and never prompts. The exit status is that of the first line marked BAD. A line marked note is for \
      information.
      """)

  @OptionGroup(title: "Global options") var global: GlobalOptions
  @OptionGroup(title: "Global options") var format: JSONOption

  func run() throws {
    let findings = Diagnosis(global).findings
    try format.print(findings, or: findings.map(\.lines).joined())
    if let bad = findings.first(where: { !$0.ok }) { throw ExitCode(bad.status.rawValue) }
  }
}
