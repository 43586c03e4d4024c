internal import ArgumentParser

/// The profiles of the project's file that a command uses.
struct ProfileOption: ParsableArguments {
  @Option(
    name: [.customShort("P"), .customLong("profile")],
    help: ArgumentHelp(
      """
      Add the variables of a profile of the project's file, which replace others of the same name. Repeat for more. \
      Default: COFFER_PROFILE, with commas between the names.
      """,
      valueName: "name"))
  var profiles: [String] = []

  /// The variables that the project's file declares. Throws a usage failure if profiles are given without a project.
  func variables(of project: Project?) throws -> [ProjectFile.Variable] {
    let variable = Environment.value("COFFER_PROFILE")?.split { $0 == "," || $0 == " " }.map(String.init)
    if let project { return try project.file.variables(with: profiles.isEmpty ? variable ?? [] : profiles) }
    if !profiles.isEmpty { throw try Self.missingProject("--profile") }
    return []
  }

  /// The failure of an option or a command that needs the project's file.
  static func missingProject(_ what: String) throws -> Failure {
    let project = try Project.required()
    return .usage("\(what) needs \(project.path), which --backend, --vault and --collection ignore. Leave them out.")
  }
}
