internal import ArgumentParser
internal import Coffer

struct DoctorCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor",
    abstract: "Say which store is used, why, what is wrong, and what to do next.",
    discussion: """
      Changes nothing and asks nobody. The exit status is that of the first thing that is BAD; \
      a note is something to know.
      """
  )

  @OptionGroup(title: "Global options") var global: GlobalOptions
  @OptionGroup(title: "Global options") var format: JSONOption

  func run() throws {
    let diagnosis = Diagnosis(global, CofferConfiguration.current())
    if format.json {
      try Output.standard.json(diagnosis.findings)
    } else {
      // At once: a reader of the first line may be gone by the second.
      try Output.standard.write(diagnosis.findings.map(\.lines).joined())
    }
    if let bad = diagnosis.findings.first(where: \.isBad) {
      throw ExitCode(bad.status.rawValue)
    }
  }
}
