internal import Coffer

/// The variables of a command's environment, in guarded memory until all of them are known.
struct SecretEnvironment: ~Copyable {
  static let pristine = ["PATH", "HOME", "TERM", "LANG"]

  /// A variable, the secret that it gets, whether it gets the path of a file, and the value.
  private typealias Entry = (variable: String, secret: SecretIdentifier?, isFile: Bool, value: SecretBytes)
  private var entries: [Entry] = []

  /// Adds a variable that holds the value, or the path of a file with it. Throws if a variable would hold a NUL.
  mutating func add(
    _ value: SecretBytes, as assignment: EnvironmentAssignment, isFile: Bool = false
  ) throws(Failure) {
    if !isFile, value.withBytes({ bytes in bytes.indices.contains { bytes[$0] == 0 } }) {
      throw .usage(
        """
        The secret “\(assignment.identifier.account)” contains a NUL, which an environment variable cannot hold. \
        Leave it out, or pass it in a file with --file.
        """)
    }
    entries.append((assignment.variable, assignment.identifier, isFile, value))
  }

  mutating func addPlain(_ value: String, as variable: String) {
    entries.append((variable, nil, false, SecretBytes(value)))
  }

  var hasFiles: Bool { entries.contains { $0.isFile } }
  var secrets: Set<SecretIdentifier> { Set(entries.compactMap(\.secret)) }

  /// These variables with the values that `backend` has now. Adds the secrets that differ to `changed`. Throws if one is missing.
  func current(
    in backend: any SecretBackend, changed: inout Set<SecretIdentifier>
  ) throws -> SecretEnvironment {
    let values = try backend.secrets(Array(secrets))
    var current = SecretEnvironment()
    current.entries = entries.filter { $0.secret == nil }
    for case (let variable, let secret?, let isFile, let old) in entries {
      guard let value = values[secret]?.value else { throw MissingSecret.failure(secret, in: backend) }
      let assignment = EnvironmentAssignment(variable: variable, identifier: secret)
      try current.add(value, as: assignment, isFile: isFile)
      if !value.isEqual(to: old) { changed.insert(secret) }
    }
    return current
  }

  /// The command's environment: this process's, from which ``Environment/concealKeys()`` has removed what opens the
  /// vault, and these variables. Writes the values that are in files to `files`.
  func environment(isPristine: Bool, files: ValueFiles? = nil) throws(SecretError) -> CommandEnvironment {
    let replaced = Set(entries.map(\.variable))
    let values = try entries.map { entry throws(SecretError) -> (variable: String, value: SecretBytes) in
      guard entry.isFile, let files else { return (entry.variable, entry.value) }
      let path = try files.add(entry.value, named: entry.variable, mode: 0o400)
      return (entry.variable, SecretBytes(path))
    }
    return CommandEnvironment(
      inheriting: { !replaced.contains($0) && (!isPristine || Self.pristine.contains($0)) }, adding: values)
  }

  /// Writes a ``CommandLaunch``, and returns its descriptor. Prints which values are too short or too long to be redacted
  /// in every form.
  func launch(isPristine: Bool, files: ValueFiles? = nil) throws(SecretError) -> Int32 {
    let given = entries.filter { $0.secret != nil }
    let unredacted = given.filter { entry in
      !entry.value.isEmpty && !entry.value.withBytes(PatternWriter.canRedact)
    }.map(\.variable)
    if !unredacted.isEmpty {
      note("secret: Not redacted, because their values are too short: \(unredacted.joined(separator: ", ")).")
    }
    let limit = PatternWriter.limit(for: given.map { $0.value.count })
    let long = given.filter { $0.value.count > limit }.map(\.variable)
    if !long.isEmpty {
      note(
        """
        secret: Long values: \(long.joined(separator: ", ")). Their lines are redacted as they are; base64 and other forms only \
        of their first \(limit) bytes.
        """)
    }
    return try CommandLaunch.write(
      environment(isPristine: isPristine, files: files),
      redacting: given.map { ($0.variable, $0.isFile) })
  }
}
