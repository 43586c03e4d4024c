internal import ArgumentParser
internal import Coffer

struct MoveCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "move", abstract: "Rename a secret.",
    discussion: """
      Keeps the value, label, expiry, attributes and times. In a vault this is one change: another process sees either the \
      old or the new name. The earlier versions have the new name too, unless it has versions of its own; the old name \
      can be restored like that of a removed secret. In a keyring, the item is copied and read back before it is removed. \
      Several different items of other programs may have one name there: without --all, none of them is moved.
      """)

  @OptionGroup(title: "Global options") var global: GlobalOptions

  @Argument(help: "The secret's name.", completion: CompletedValue.names.kind)
  var name: String

  @Argument(help: "The new name.")
  var newName: String

  @Option(help: "The new service. Default: the same service.", completion: CompletedValue.services.kind)
  var toService: String?

  @Flag(help: "Replace a secret that has the new name.")
  var force = false

  @Flag(help: "Move all items of a keyring that have the name.")
  var all = false

  func run() throws {
    let old = try global.identifier(name)
    let named = try global.newIdentifier(newName)
    let isReference = named.account != newName
    let new = isReference ? named : try SecretIdentifier(service: toService ?? old.service, account: newName)
    let backend = try global.open(to: .change)
    do throws(SecretError) {
      if all, let keyring = backend as? any ItemBackend {
        try keyring.moveAll(old, to: new, replacing: force)
      } else {
        try backend.move(old, to: new, replacing: force)
      }
    } catch {
      switch error.code {
      case .missing: throw MissingSecret.failure(old, in: backend)
      case .alreadyExists: throw Failure.exists(new)
      default: throw error
      }
    }
  }
}
