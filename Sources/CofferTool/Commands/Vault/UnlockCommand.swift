internal import ArgumentParser
internal import Coffer

struct UnlockCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "unlock", abstract: "Keep the vault unlocked for a limited time.",
    discussion: """
      Puts the vault's master key into this user's keyring in the kernel. Every program of the user can read it there, \
      until the time is over, secret lock removes it, or the machine restarts. It is never written to a disk.
      """)

  @OptionGroup(title: "Global options") var global: GlobalOptions

  @Option(
    name: .customLong("for"),
    help: ArgumentHelp("The time: for example 30s, 15m or 12h; at most 7d.", valueName: "span"))
  var span = "15m"

  func run() throws {
    guard let seconds = TimeText.span(span), seconds <= 7 * 86_400 else {
      throw Failure.usage("“\(span)” is not a valid time for --for. Write 30s, 15m or 12h; at most 7d.")
    }
    let vault = try global.openVault(requirement: "Only a vault can be unlocked", to: .examine)
    // A kernel keyring that cannot be used is reported before a passphrase is typed.
    let keyring = KernelKeyring()
    try keyring.requireAvailable()
    try vault.withMasterKey { id, master throws(SecretError) in
      try keyring.keep(master, forVault: id, for: .seconds(seconds))
    }
    inform("The vault \(vault.path) is unlocked for \(span). To lock it: secret lock")
  }
}
