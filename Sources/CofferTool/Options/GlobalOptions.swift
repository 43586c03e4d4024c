internal import ArgumentParser
internal import Coffer

/// The options of every command that uses a backend. ``ArgumentOrder`` also accepts them before the command's
/// name.
struct GlobalOptions: ParsableArguments {
  static let defaultService = "secret"

  @OptionGroup var backend: BackendOptions

  @Option(
    name: [.customShort("s", allowingJoined: true), .long],
    help: "The service that the names belong to. Default: COFFER_SERVICE, or else \(Self.defaultService).",
    completion: CompletedValue.services.kind)
  var service: String?

  func validate() throws {
    if service?.isEmpty == true { throw ValidationError("The service of --service is empty. Name one.") }
  }

  var serviceName: String { service ?? Environment.value("COFFER_SERVICE") ?? Self.defaultService }

  /// The identifier of the secret called `name` in the selected service. `name` is the account, verbatim.
  func identifier(_ name: String) throws(SecretError) -> SecretIdentifier {
    try SecretIdentifier(service: serviceName, account: name)
  }

  /// The identifier that a reference names, or that of the secret called `name`.
  func identifier(orReference name: String) throws -> SecretIdentifier {
    try SecretReference(name)?.identifier ?? identifier(name)
  }

  /// The identifiers of the secrets called `names`, each once.
  func identifiers(_ names: [String]) throws(SecretError) -> [SecretIdentifier] {
    var identifiers: [SecretIdentifier] = []
    for name in names {
      let identifier = try identifier(name)
      if !identifiers.contains(identifier) { identifiers.append(identifier) }
    }
    return identifiers
  }
}
