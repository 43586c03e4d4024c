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
      """
  )

  @OptionGroup(title: "Global options") var global: GlobalOptions

  @Argument(help: "The secrets' names.", completion: CompletedValue.names.kind)
  var names: [String]

  @Flag(help: "Remove the earlier versions as well, also of secrets that were removed before.")
  var purge = false

  @Flag(help: "Remove all items of a keyring that have the name.")
  var all = false

  func run() throws {
    let identifiers = try global.identifiers(names)
    let backend = try global.open()
    // A backend without earlier versions has nothing else to remove.
    if purge, let backend = backend as? any VersionedSecretBackend {
      return try removeWithHistory(identifiers, from: backend)
    }
    if let backend = backend as? any MultipleItemSecretBackend {
      return try remove(identifiers, from: backend)
    }
    let missing: SecretIdentifier? = try backend.withTransaction { transaction throws(SecretError) in
      for identifier in identifiers where try transaction.item(identifier) == nil { return identifier }
      for identifier in identifiers { try transaction.remove(identifier) }
      return nil
    }
    if let missing { throw failure(missing, in: backend, among: identifiers) }
  }

  private func remove(_ identifiers: [SecretIdentifier], from backend: any MultipleItemSecretBackend) throws {
    for identifier in identifiers {
      let items = try backend.differentItems(identifier)
      if items.isEmpty { throw failure(identifier, in: backend, among: identifiers) }
      // The removal of one throws an error that lists the items.
      if items.count > 1 && !all {
        try backend.remove(identifier)
        return
      }
    }
    for identifier in identifiers {
      if all { try backend.removeAll(identifier) } else { try backend.remove(identifier) }
    }
  }

  private func removeWithHistory(
    _ identifiers: [SecretIdentifier], from backend: any VersionedSecretBackend
  ) throws {
    if try backend.removeWithHistory(identifiers) { return }
    let missing = try identifiers.first { try backend.versions(of: $0).isEmpty }
    throw failure(missing ?? identifiers[0], in: backend, among: identifiers)
  }

  private func failure(
    _ missing: SecretIdentifier, in backend: any SecretBackend, among identifiers: [SecretIdentifier]
  ) -> Failure {
    MissingSecret.failure(
      missing, in: backend, outcome: identifiers.count == 1 ? "" : " Nothing was removed.")
  }
}
