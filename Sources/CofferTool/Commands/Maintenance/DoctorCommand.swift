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
    try format.print(diagnosis.findings, or: diagnosis.findings.map(\.lines).joined())
    if let bad = diagnosis.findings.first(where: { !$0.ok }) {
      throw ExitCode(bad.status.rawValue)
    }
  }
}
