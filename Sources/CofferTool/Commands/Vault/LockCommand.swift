internal import ArgumentParser
internal import Coffer

struct LockCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "lock", abstract: "Remove the vault's key that unlock kept.",
    discussion: "A program that has already opened the vault can use it until the program ends.")

  @OptionGroup(title: "Global options") var global: GlobalOptions

  func run() throws {
    let vault = try global.openVault(requirement: "Only a vault can be locked", to: .examine)
    // The file can be damaged, gone or another vault's, and an engine can be away.
    if let id = vault.recordedID, try KernelKeyring().forget(vault: id) { return }
    if try !KernelKeyring().forget(vault: vault.description().id) {
      inform("The vault \(vault.path) was not unlocked.")
    }
  }
}
