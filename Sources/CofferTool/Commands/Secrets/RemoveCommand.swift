internal import ArgumentParser
internal import Coffer

struct RemoveCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "remove", abstract: "Remove secrets.",
    discussion: """
      If one of several secrets does not exist, none is removed. A vault keeps the removed value in its history: to \
      bring it back, use secret restore. With --purge, the vault is written again without any version of the secrets. \
      Copies of the vault, and free space of the disk, may still contain them. A keyring keeps no removed value, with or without --purge. Several \
      different items of other programs may have one name there: without --all, none of them is removed.
      """)

  @OptionGroup(title: "Global options") var global: GlobalOptions

  @Argument(help: "The secrets' names.", completion: CompletedValue.names.kind)
  var names: [String]

  @Flag(help: "Remove the earlier versions too, even of secrets that were removed before.")
  var purge = false

  @Flag(help: "Remove all items of a keyring that have the name.")
  var all = false

  func run() throws {
    let identifiers = try global.identifiers(names)
    let backend = try global.open(to: .change)
    if let keyring = backend as? any ItemBackend { return try remove(identifiers, from: keyring) }
    do throws(SecretError) {
      try backend.withTransaction { transaction throws(SecretError) in
        for identifier in identifiers {
          guard try purge ? transaction.erase(identifier) : transaction.remove(identifier) else {
            throw .missing(identifier)
          }
        }
      }
    } catch {
      if error.code == .missing, let absent = error.identifier { throw MissingSecret.failure(absent, in: backend) }
      throw error
    }
  }

  private func remove(_ identifiers: [SecretIdentifier], from backend: any ItemBackend) throws {
    for identifier in identifiers {
      let items = try backend.differentItems(identifier)
      if items.isEmpty { throw MissingSecret.failure(identifier, in: backend) }
      // This call throws an error that lists the items.
      if items.count > 1 && !all {
        try backend.remove(identifier)
        return
      }
    }
    for identifier in identifiers {
      if all { try backend.removeAll(identifier) } else { try backend.remove(identifier) }
      if identifiers.count > 1 { changed("“\(identifier.account)” was removed.") }
    }
  }
}
