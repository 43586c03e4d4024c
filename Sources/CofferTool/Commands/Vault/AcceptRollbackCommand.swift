internal import ArgumentParser
internal import Coffer

struct AcceptRollbackCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "accept-rollback",
    abstract: "Take an older vault for the newest, after restoring a backup on purpose.",
    discussion: """
      A vault that is older than one seen before is refused with 65, since someone may have put back secrets that \
      were replaced or removed. This says that it was you. What was stored since that backup is gone.
      """
  )

  @OptionGroup(title: "Global options") var global: GlobalOptions

  func run() throws {
    let vault = try global.vaultStore(toBe: "accepted")
    let checkpoint = try vault.acceptRollback()
    try Output.standard.line("From now on \(vault.path) counts from \(checkpoint).")
  }
}
