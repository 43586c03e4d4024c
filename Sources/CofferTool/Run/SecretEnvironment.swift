internal import Coffer

/// The variables of a command's environment, in guarded memory until all of them are known.
struct SecretEnvironment: ~Copyable {
  static let pristine = ["PATH", "HOME", "TERM", "LANG"]

  private var plain: [(variable: String, value: SecretBytes)] = []
  private var given: [(assignment: EnvironmentAssignment, value: SecretBytes)] = []

  /// Adds a variable that holds the value, or the path of a file with it. Throws if a variable would hold a NUL.
  mutating func add(_ value: SecretBytes, as assignment: EnvironmentAssignment) throws(Failure) {
    if !assignment.isFile, value.withBytes({ $0.contains(0) }) {
      throw .usage(
        """
        The secret “\(assignment.identifier.account)” contains a NUL, which an environment variable cannot hold. \
        Leave it out, or pass it in a file with --file.
        """)
    }
    given.append((assignment, value))
  }

  mutating func addPlain(_ value: String, as variable: String) {
    plain.append((variable, SecretBytes(value)))
  }

  var hasFiles: Bool { given.contains { $0.assignment.isFile } }
  var secrets: Set<SecretIdentifier> { Set(given.map(\.assignment.identifier)) }

  /// These variables with the present values in `backend`. Adds what differs to `changed`. Throws if one is missing.
  func current(in backend: any SecretBackend, changed: inout Set<SecretIdentifier>) throws -> SecretEnvironment {
    let values = try backend.secrets(Array(secrets))
    var current = SecretEnvironment()
    current.plain = plain
    for (assignment, old) in given {
      let secret = assignment.identifier
      guard let value = values[secret]?.value else { throw MissingSecret.failure(secret, in: backend) }
      try current.add(value, as: assignment)
      if !value.isEqual(to: old) { changed.insert(secret) }
    }
    return current
  }

  /// The command's environment: this process's, from which ``Environment/concealKeys()`` has removed what opens the
  /// vault, and these variables. Writes the values that are in files to `files`.
  func environment(isPristine: Bool, files: ValueFiles? = nil) throws(SecretError) -> CommandEnvironment {
    var values = plain
    for (assignment, value) in given {
      let path = try assignment.isFile ? files?.add(value, named: assignment.variable, mode: 0o400) : nil
      values.append((assignment.variable, path.map { SecretBytes($0) } ?? value))
    }
    let replaced = Set(values.map(\.variable))
    return CommandEnvironment(
      inheriting: { !replaced.contains($0) && (!isPristine || Self.pristine.contains($0)) }, adding: values)
  }

  /// Writes a ``CommandLaunch``, and returns its descriptor. Prints which values are too short or too long to be
  /// redacted in every form.
  func launch(isPristine: Bool, files: ValueFiles? = nil) throws(SecretError) -> Int32 {
    let unredacted = given.filter { !$0.value.isEmpty && !$0.value.withBytes(PatternWriter.canRedact) }
      .map(\.assignment.variable)
    if !unredacted.isEmpty {
      note("secret: Not redacted, because their values are too short: \(unredacted.joined(separator: ", ")).")
    }
    let limit = PatternWriter.limit(for: given.map { $0.value.count })
    let long = given.filter { $0.value.count > limit }.map(\.assignment.variable)
    if !long.isEmpty {
      note(
        """
        secret: Long values: \(long.joined(separator: ", ")). Their lines are redacted as they are; base64 and other forms only \
        of their first \(limit) bytes.
        """)
    }
    return try CommandLaunch.write(
      environment(isPristine: isPristine, files: files),
      redacting: given.map { ($0.assignment.variable, $0.assignment.isFile) })
  }
}
