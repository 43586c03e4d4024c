internal import ArgumentParser
internal import Coffer

struct UnlockCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "unlock",
    abstract: "Keep the vault open for a while.",
    discussion: """
      The vault's master key is put into the kernel's keyring of this user, where every program of the user can read \
      it until the time is over, or secret lock, or a restart. It is never on a disk.
      """
  )

  @OptionGroup(title: "Global options") var global: GlobalOptions

  @Option(
    name: .customLong("for"),
    help: ArgumentHelp("How long: 30s, 15m, 12h, 7d at most.", valueName: "span")
  )
  var span = "15m"

  func run() throws {
    guard let seconds = TimeText.span(span), seconds <= 7 * 86_400 else {
      throw Failure.usage("“\(span)” is no time to keep a vault open. Write 30s, 15m or 12h; 7d at most.")
    }
    let vault = try global.vaultStore(toBe: "unlocked")
    // Before a passphrase is typed for nothing.
    let keyring = KernelKeyring()
    try keyring.requireAvailable()
    try vault.withMasterKey { id, master throws(SecretError) in
      try keyring.keep(master, forVault: id, seconds: seconds)
    }
    note("The vault \(vault.path) is open for \(span). To end that: secret lock")
  }
}

struct LockCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "lock",
    abstract: "End what unlock began.",
    discussion: "A program that has the vault open already can go on until it ends."
  )

  @OptionGroup(title: "Global options") var global: GlobalOptions

  func run() throws {
    let path = try global.vaultStore(toBe: "locked").path
    let wasKept = try KernelKeyring().forget(vault: try VaultBackend.describe(path: path).id)
    if !wasKept { note("The vault \(path) was not kept open.") }
  }
}
