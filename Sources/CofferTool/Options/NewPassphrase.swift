internal import ArgumentParser
internal import Coffer

/// The cost of a new passphrase.
struct NewPassphrase: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      """
      The memory in MiB that each use of a new passphrase takes: 64, the default, to 1024. With more memory, whoever guesses \
      is slower.
      """,
      valueName: "MiB"))
  var memory: Int?

  /// The options of a vault that gets a passphrase, or another key if not `isUsed`.
  func vaultOptions(isUsed: Bool) throws(Failure) -> VaultOptions {
    var options = VaultOptions()
    guard let memory else { return options }
    guard isUsed else { throw .usage("--memory is for a new passphrase. Add --passphrase.") }
    guard (options.passphraseMemory >> 20...options.maximumPassphraseMemory >> 20).contains(memory) else {
      throw .usage("--memory must be 64 to 1024.")
    }
    note("Each machine that opens the vault with the passphrase needs \(memory) MiB of memory for it.")
    options.passphraseMemory = memory << 20
    return options
  }
}
