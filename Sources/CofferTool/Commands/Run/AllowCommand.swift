internal import ArgumentParser

struct AllowCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "allow", abstract: "Let the project's file choose among your own secrets.",
    discussion: """
      A file \(ProjectFile.name) that names a vault inside its work tree needs no permission, because that vault \
      reveals only itself. Any other file is refused until you allow what it declares. Prints what it declares, or \
      what has changed since you allowed it, and asks on a terminal; elsewhere, COFFER_ALLOW must have the digest of \
      its declarations. The permission is for this path, and ends when the declarations change. Prints the digest: \
      COFFER_ALLOW=DIGEST allows them for one command, such as in CI.
      """)

  @OptionGroup(title: "Global options") var format: JSONOption

  @Flag(help: "Take the permission back.")
  var revoke = false

  func run() throws {
    let output = Output.standard
    if revoke {
      let path = try Project.nearestPath()
      let wasAllowed = try AllowedProjects.remove(path)
      return try output.line("\(path.printable) \(wasAllowed ? "is no longer" : "was not") allowed.")
    }
    let project = try Project.required()
    let declared = project.file.declarations
    if format.json {
      let report: JSONObject = [
        "path": project.path, "digest": project.file.digest, "declarations": declared,
      ]
      try output.json(report)
    } else {
      try Self.difference(from: AllowedProjects.declarations(of: project) ?? [], to: declared).forEach(output.line)
    }
    if try !AllowedProjects.contains(project) {
      try Terminal.confirm(
        "Allow \(project.path.printable)?",
        otherwise: """
          Nothing was allowed, because nobody can be asked here. Read what the file declares, and give its digest: \
          COFFER_ALLOW=\(project.file.digest) secret allow
          """)
    }
    try AllowedProjects.add(project)
    changed("The file is allowed.")
    if format.json { return }
    try output.line("Allowed \(project.path.printable). In CI: COFFER_ALLOW=\(project.file.digest)")
  }

  /// The lines that are gone and those that are new, compared by their bytes. Both are sorted.
  private static func difference(from old: [String], to new: [String]) -> [String] {
    let (before, after) = (Set(old.map { Array($0.utf8) }), Set(new.map { Array($0.utf8) }))
    return old.filter { !after.contains(Array($0.utf8)) }.map { "- " + $0 }
      + new.filter { !before.contains(Array($0.utf8)) }.map { "+ " + $0 }
  }
}
