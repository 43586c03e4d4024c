internal import ArgumentParser
internal import Coffer

struct DoctorCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "doctor", abstract: "Print which backend is used and why, what is wrong, and what to do.",
    discussion: """
      Changes nothing and never prompts. The exit status is that of the first line marked BAD. A line marked note is for \
      information.
      """
  )

  @OptionGroup(title: "Global options") var global: GlobalOptions
  @OptionGroup(title: "Global options") var format: JSONOption

  func run() throws {
    let diagnosis = Diagnosis(global, CofferConfiguration.current())
    if format.json {
      try Output.standard.json(diagnosis.findings)
    } else {
      // In one call: a reader such as head may leave after the first line.
      try Output.standard.write(diagnosis.findings.map(\.lines).joined())
    }
    if let bad = diagnosis.findings.first(where: { !$0.ok }) {
      throw ExitCode(bad.status.rawValue)
    }
  }
}
