internal import CofferCore
internal import CofferSystem

/// A shell command that prints a passphrase.
struct PassphraseCommand {
  private static let name = "COFFER_PASSPHRASE_COMMAND"
  private let command: String

  init(_ command: String) { self.command = command }

  /// The standard output of the command. Its standard input is empty, and its standard error is this process's.
  ///
  /// After `timeout` the command is killed together with the processes that it started.
  func run(environment: [String: String], timeout: Duration) throws(SecretError) -> SecretBytes {
    do throws(SecretError) {
      let process = try CapturedProcess.run(
        ["/bin/sh", "-c", command], named: "The command in \(Self.name)", environment: environment,
        standardError: .inherited, limit: CredentialText.maximumSize, timeout: timeout)
      let end: String
      switch process.end {
      case .status(0): return process.output.copy()
      case .status(let status): end = "with the status \(status)"
      case .signal(let signal): end = "by the signal \(signal)"
      }
      throw SecretError(
        .configuration, "The command in \(Self.name) ended \(end).", advice: "Run it by hand to see why.")
    } catch  where error.code == .tooLarge {
      throw SecretError(.configuration, error.reason, advice: "Check what the command prints.")
    }
  }
}
