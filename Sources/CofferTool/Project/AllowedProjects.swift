internal import CofferConfiguration
internal import CofferCore
internal import CofferSystem
internal import CofferLibc

/// The project files that the user has allowed: for each path, what the file declared at that time.
///
/// `COFFER_ALLOW` allows a file with that digest, for one process.
enum AllowedProjects {
  static func contains(_ project: Project) throws(SecretError) -> Bool {
    if Environment.value("COFFER_ALLOW") == project.file.digest { return true }
    // Compares digests, and so bytes: Swift compares texts by canonical equivalence.
    return try declarations(of: project).map(ProjectFile.digest(of:)) == project.file.digest
  }

  /// What was allowed, or `nil` if nothing was.
  static func declarations(of project: Project) throws(SecretError) -> [String]? {
    let record = Self.record(for: project.path)
    let text = try PrivateFile.text(of: record, as: "The record \(record)", limit: 1 << 20)
    return text.map { $0.split(separator: "\n").dropFirst().map(String.init) }
  }

  static func add(_ project: Project) throws(SecretError) {
    let lines = [project.path.printable] + project.file.declarations
    try PrivateDirectory.create(directory)
    try PrivateFile.write(lines.map { $0 + "\n" }.joined().utf8.span, to: record(for: project.path), replacing: true)
  }

  /// Returns whether the file at `path` was allowed.
  static func remove(_ path: String) throws(SecretError) -> Bool {
    if unlink(record(for: path)) == 0 { return true }
    if errno == ENOENT { return false }
    throw .system(FileSystemError(errno), "The record \(record(for: path)) cannot be removed")
  }

  private static var directory: String { BackendConfiguration.current().allowedProjectsDirectory }

  private static func record(for path: String) -> String {
    let hash = BLAKE2b.hash(path.utf8.span, count: 16)
    return "\(directory)/\(hash.map(\.hexadecimal).joined().lowercased())"
  }
}
