internal import Coffer

/// The variables of a command's environment, in guarded memory until all of them are known.
struct SecretEnvironment: ~Copyable {
  /// The variables that `--pristine` keeps.
  static let pristine = ["PATH", "HOME", "TERM", "LANG"]

  /// A variable, the secret that it gets, and the value: followed by a NUL, unless the variable gets the path of a file.
  private typealias Entry = (variable: String, secret: SecretIdentifier?, isFile: Bool, text: SharedSecret)
  private var entries: [Entry] = []
  /// The variables whose values are too short to be redacted.
  private var unredacted: [String] = []

  /// Adds a variable that holds the value. Throws if the value contains a NUL.
  mutating func add(_ value: borrowing SecretBytes, as assignment: EnvironmentAssignment) throws(Failure) {
    let text = value.withBytes { bytes -> SecretBytes? in
      for index in bytes.indices where bytes[index] == 0 { return nil }
      return Self.terminated(bytes)
    }
    guard let text else {
      throw .usage(
        """
        The secret “\(assignment.identifier.account)” contains a NUL, which an environment variable cannot hold. \
        Leave it out, or pass it in a file with --file.
        """
      )
    }
    entries.append((assignment.variable, assignment.identifier, false, SharedSecret(text)))
    if !value.isEmpty, !OutputRedactor.canRedact(value) { unredacted.append(assignment.variable) }
  }

  /// Adds a variable that holds the path of a file with the value.
  mutating func addFile(_ value: borrowing SecretBytes, as assignment: EnvironmentAssignment) {
    entries.append((assignment.variable, assignment.identifier, true, SharedSecret(value.copy())))
    if !value.isEmpty, !OutputRedactor.canRedact(value) { unredacted.append(assignment.variable) }
  }

  mutating func addPlain(_ value: String, as variable: String) {
    entries.append((variable, nil, false, SharedSecret(Self.terminated(value.utf8.span))))
  }

  private static func terminated(_ bytes: Span<UInt8>) -> SecretBytes {
    SecretWriter.bytes(capacity: bytes.count + 1) { writer in
      writer.append(bytes)
      writer.append(0)
    }
  }

  var hasFiles: Bool { entries.contains { $0.isFile } }
  var secrets: Set<SecretIdentifier> { Set(entries.compactMap(\.secret)) }

  /// These variables with the values that `backend` has now. Adds the secrets that differ to `changed`. Throws if one is missing.
  func current(
    in backend: any SecretBackend, changed: inout Set<SecretIdentifier>
  ) throws -> SecretEnvironment {
    let values = try backend.lookUp(Array(secrets))
    var current = SecretEnvironment()
    current.entries = entries.filter { $0.secret == nil }
    for case (let variable, let secret?, let isFile, let text) in entries {
      guard let value = values[secret] else { throw MissingSecret.failure(secret, in: backend) }
      let assignment = EnvironmentAssignment(variable: variable, identifier: secret)
      try isFile ? current.addFile(value.bytes, as: assignment) : current.add(value.bytes, as: assignment)
      if current.entries.last?.text.bytes.isEqual(to: text.bytes) == false { changed.insert(secret) }
    }
    return current
  }

  /// The command's environment: this process's, from which ``Environment/concealKeys()`` has removed what opens the
  /// vault, and these variables. Writes the values that are in files to `files`.
  func environment(isPristine: Bool, files: ValueFiles? = nil) throws(SecretError) -> CommandEnvironment {
    let replaced = Set(entries.map(\.variable))
    let texts = try entries.map { entry throws(SecretError) -> (variable: String, text: SharedSecret) in
      guard entry.isFile, let files else { return (entry.variable, entry.text) }
      let path = try files.add(entry.text.bytes, named: entry.variable, mode: 0o400)
      return (entry.variable, SharedSecret(Self.terminated(path.utf8.span)))
    }
    return CommandEnvironment(
      inheriting: { !replaced.contains($0) && (!isPristine || Self.pristine.contains($0)) }, adding: texts)
  }

  /// Writes a ``CommandLaunch``, and returns its descriptor. Prints which values are too short to be redacted.
  func launch(isPristine: Bool, files: ValueFiles? = nil) throws(SecretError) -> Int32 {
    if !unredacted.isEmpty {
      note(
        "secret: Not redacted, because their values are too short: \(unredacted.joined(separator: ", ")).")
    }
    return try CommandLaunch.write(
      environment(isPristine: isPristine, files: files),
      redacting: entries.filter { $0.secret != nil }.map { ($0.variable, $0.isFile) })
  }
}
