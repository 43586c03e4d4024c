internal import ArgumentParser
internal import Coffer

struct RemoveCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove",
    abstract: "Remove secrets permanently.",
    discussion: "If one of several secrets does not exist, none is removed."
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
    let backend = try global.backend.open()
    let missing: SecretIdentifier? = try backend.withTransaction { transaction throws(SecretError) in
      for identifier in identifiers where try transaction.item(identifier) == nil { return identifier }
      for identifier in identifiers { try transaction.remove(identifier) }
      return nil
    }
    guard let missing else { return }
    let failure = MissingSecret.failure(missing, in: backend)
    if identifiers.count == 1 { throw failure }
    throw Failure(failure.status, failure.message + " Nothing was removed.")
  }
}
