internal import Coffer
internal import CofferSystem

/// A file that a command writes for the user.
enum FileOutput {
  /// Writes `contents` to a file of mode 0600, in one step. Without `replacing`, throws a failure if the path
  /// exists. Blocks signals, so that none leaves an unfinished file behind.
  static func write(_ contents: borrowing SecretBytes, to path: String, replacing: Bool) throws {
    let signals = try BlockedSignals(BlockedSignals.interruptions)
    defer { withExtendedLifetime(signals) {} }
    do throws(SecretError) {
      try contents.withBytes { bytes throws(SecretError) in
        try PrivateFile.write(bytes, to: path, replacing: replacing)
      }
    } catch {
      guard error.code == .alreadyExists else { throw error }
      throw Failure(.wouldOverwrite, "\(error.reason) Add --force to replace it.")
    }
  }
}
