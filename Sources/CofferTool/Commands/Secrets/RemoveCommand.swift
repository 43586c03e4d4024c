internal import ArgumentParser
internal import Coffer

struct RemoveCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove",
    abstract: "Remove secrets for good.",
    discussion: "Where one of several is missing, none is removed."
  )

  @OptionGroup(title: "Global options") var global: GlobalOptions

  @Argument(help: "The secrets' names.", completion: NameCompletion.kind)
  var names: [String]

  func run() throws {
    var identifiers: [SecretIdentifier] = []
    for name in names {
      let identifier = try global.identifier(name)
      if !identifiers.contains(identifier) { identifiers.append(identifier) }
    }
    let store = try global.store()
    let missing: SecretIdentifier?
    if let store = store as? any TransactionalSecretBackend {
      missing = try store.transaction { transaction throws(SecretError) in
        for identifier in identifiers where try transaction.item(identifier) == nil { return identifier }
        for identifier in identifiers { try transaction.remove(identifier) }
        return nil
      }
    } else {
      missing = try Self.remove(identifiers, oneByOneFrom: store)
    }
    if let missing {
      var failure = MissingSecret.failure(missing, in: store)
      if identifiers.count > 1 {
        failure = Failure(failure.status, failure.message + " Nothing was removed.")
      }
      throw failure
    }
  }

  /// Where there is no transaction: looks for all of them first, so that only a change made by someone else
  /// meanwhile can leave some removed.
  private static func remove(
    _ identifiers: [SecretIdentifier],
    oneByOneFrom store: any SecretBackend
  ) throws(SecretError) -> SecretIdentifier? {
    for identifier in identifiers where try store.item(identifier) == nil { return identifier }
    for identifier in identifiers { try store.remove(identifier) }
    return nil
  }
}
