internal import Coffer
internal import CofferSystem

extension PrivateFile {
  static func write(
    _ contents: borrowing SecretBytes, to path: String, replacing: Bool
  ) throws(SecretError) {
    try contents.withBytes { bytes throws(SecretError) in
      try write(bytes, to: path, replacing: replacing)
    }
  }

  /// Writes the output of a command. Without `replacing`, throws a failure if the path exists. Blocks signals, so that none
  /// leaves an unfinished file behind.
  static func writeOutput(_ contents: borrowing SecretBytes, to path: String, replacing: Bool) throws {
    let signals = try BlockedSignals(BlockedSignals.interruptions)
    defer { withExtendedLifetime(signals) {} }
    do throws(SecretError) { try write(contents, to: path, replacing: replacing) } catch {
      guard error.code == .alreadyExists else { throw error }
      throw Failure(.wouldOverwrite, "\(error.reason) Add --force to replace it.")
    }
  }
}
