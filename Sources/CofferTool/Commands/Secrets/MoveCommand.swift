internal import ArgumentParser
internal import Coffer

struct MoveCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "move",
    abstract: "Give a secret another name.",
    discussion: """
      Value, label, expiry, attributes and the time of creation stay. In a vault it is one change: another process \
      sees the old name or the new one. In a keyring the new one is stored first, and the old one removed then.
      """
  )

  @OptionGroup(title: "Global options") var global: GlobalOptions

  @Argument(help: "The secret's name.")
  var name: String

  @Argument(help: "Its new name.")
  var newName: String

  @Option(help: "The service it is to belong to. Default: the same.")
  var toService: String?

  @Flag(help: "Replace a secret that has the new name.")
  var force = false

  private enum Outcome {
    case done, missing, taken
  }

  func run() throws {
    let old = try global.identifier(name)
    let new = try SecretIdentifier(service: toService ?? global.serviceName, account: newName)
    let store = try global.store()
    let outcome: Outcome
    if let store = store as? any TransactionalSecretBackend {
      outcome = try store.transaction { transaction throws(SecretError) in
        guard let item = try transaction.item(old), let value = try transaction.lookUp(old) else {
          return .missing
        }
        if old == new { return .done }
        if try transaction.item(new) != nil, !force { return .taken }
        try transaction.store(value, for: new, metadata: item.metadata)
        try transaction.remove(old)
        return .done
      }
    } else {
      outcome = try oneByOne(old, new, store)
    }
    switch outcome {
    case .done: break
    case .missing: throw MissingSecret.failure(old, in: store)
    case .taken:
      throw Failure(
        .wouldOverwrite,
        """
        There is a secret “\(new.account)” in the service “\(new.service)” already, and nothing was changed. \
        Add --force to replace it.
        """
      )
    }
  }

  private func oneByOne(
    _ old: SecretIdentifier,
    _ new: SecretIdentifier,
    _ store: any SecretBackend
  ) throws(SecretError) -> Outcome {
    guard let item = try store.item(old), let value = try store.lookUp(old) else { return .missing }
    if old == new { return .done }
    if try store.item(new) != nil, !force { return .taken }
    try store.store(value, for: new, metadata: item.metadata)
    guard let copy = try store.lookUp(new), copy.isEqual(to: value) else {
      throw SecretError(
        .io,
        "The secret “\(new.account)” did not read back as it was stored.",
        advice: "“\(old.account)” is still there; try again."
      )
    }
    try store.remove(old)
    return .done
  }
}
