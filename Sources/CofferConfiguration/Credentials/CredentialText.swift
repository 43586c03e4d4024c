internal import CofferCore
internal import CofferSystem
internal import CofferVault

/// Reads and parses the text of a key or a passphrase.
enum CredentialText {
  /// The largest text in bytes. A key has 62, an identity with its recipient 2,100, and a passphrase is short.
  static let maximumSize = 65_536

  /// The contents of the file at `path`. `name` is the variable or the configuration file that names it.
  ///
  /// Throws `.configuration` if `path` is empty, or if there is no regular file of at most ``maximumSize`` bytes; and
  /// `.denied` if other users have access to the file, as `FileExposure` defines it.
  static func read(_ path: String, named name: String) throws(SecretError) -> SecretBytes {
    try require(!path.isEmpty, of: name, "a path")
    try VaultCredential.requirePath(path, from: name)
    let subject = "The file \(path), which \(name) names,"
    if let text = try PrivateFile.read(path, as: subject, limit: maximumSize) { return text }
    throw SecretError(.configuration, "\(subject) does not exist.", advice: "Put the file there, or correct \(name).")
  }

  /// The output of the shell command in the variable `name`, which gets `environment` and an empty standard input.
  /// After `timeout` it is killed together with the processes that it started.
  static func output(
    of command: String, named name: String, environment: [String: String], timeout: Duration
  ) throws(SecretError) -> SecretBytes {
    try require(!command.isEmpty, of: name, "a shell command")
    try VaultCredential.requirePath(command, from: name)
    do throws(SecretError) {
      let process = try CapturedProcess.run(
        ["/bin/sh", "-c", command], named: "The command in \(name)", environment: environment,
        standardError: .inherited, limit: maximumSize, timeout: timeout)
      let end: String
      switch process.end {
      case .status(0): return process.output
      case .status(let status): end = "with the status \(status)"
      case .signal(let signal): end = "by the signal \(signal)"
      }
      throw SecretError(.configuration, "The command in \(name) ended \(end).", advice: "Run it by hand to see why.")
    } catch  where error.code == .tooLarge {
      throw SecretError(.configuration, error.reason, advice: "Check what the command prints.")
    }
  }

  /// The key or the identities in `text`, whose source is `name`.
  static func key(in text: SecretBytes, from name: String) throws(SecretError) -> VaultCredential {
    try requireText(!text.isEmpty, from: name)
    do throws(SecretError) {
      return try VaultCredential.parse(text)
    } catch {
      throw SecretError(error.code, "\(name) does not hold a key: \(error.reason)", advice: error.advice)
    }
  }

  /// The passphrase in `text`, which may end in one LF that is not part of it.
  static func passphrase(in text: SecretBytes, from name: String) throws(SecretError) -> VaultCredential {
    let length = text.withBytes { $0.isEmpty || $0[$0.count - 1] != 10 ? $0.count : $0.count - 1 }
    try requireText(length > 0, from: name)
    return .passphrase(text.prefix(length))
  }

  private static func requireText(_ isPresent: Bool, from name: String) throws(SecretError) {
    if isPresent { return }
    throw SecretError(
      .configuration, "The text that \(name) gives is empty.",
      advice: "Check the variable, the file or the command.")
  }

  /// A variable that is set and empty is an error: a CI system does this if the secret is not available.
  static func require(_ isPresent: Bool, of name: String, _ what: String) throws(SecretError) {
    if isPresent { return }
    throw SecretError(.configuration, "\(name) is set, and empty.", advice: "Give it \(what), or unset it.")
  }
}
