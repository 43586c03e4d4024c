internal import ArgumentParser
internal import Coffer

struct AcceptRollbackCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "accept-rollback",
    abstract: "Accept an older copy of the vault, after restoring a backup.",
    discussion: """
      A vault that is older than one seen before is refused with status 65, because someone may have brought back \
      secrets that were replaced or removed. This command confirms that you restored the older copy. The changes made \
      since that copy are lost.
      """
  )

  @OptionGroup(title: "Global options") var global: GlobalOptions

  func run() throws {
    let vault = try global.backend.openVault(requirement: "Only a vault can be rolled back")
    let checkpoint = try vault.trust()
    try Output.standard.line("Accepted \(vault.path) at checkpoint \(checkpoint). Older copies are refused.")
  }
}
