internal import ArgumentParser
internal import Coffer

struct LockCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "lock", abstract: "Remove the vault's key that unlock kept.",
    discussion: "A program that has already opened the vault can use it until the program ends.")

  @OptionGroup(title: "Global options") var global: GlobalOptions

  func run() throws {
    let path = try global.openVault(requirement: "Only a vault can be locked").path
    let id = try VaultBackend.describe(path: path).id
    if try !KernelKeyring().forget(vault: id) { inform("The vault \(path) was not unlocked.") }
  }
}
