internal import Coffer

/// Names and services for completion, with the options that select them on the unfinished line. There are none
/// unless the backend opens without a prompt and without stretching a passphrase.
struct StoredTexts {
  private var options = BackendOptions.none
  private var service: String?
  /// Whether an option's value is known only to the shell, so that another store could be meant.
  private var isUnknown = false

  /// Takes over an option on the line, if it selects the store or the service.
  mutating func select(_ option: CommandDescription.Argument, _ value: String?) {
    let names = ["--service", "--vault", "--collection", "--backend"]
    guard let selecting = names.first(where: option.texts.contains) else { return }
    guard let value else { return isUnknown = true }
    switch selecting {
    case "--service": service = value
    case "--collection": options.collection = value
    case "--vault":
      // Shells expand a tilde only when they run the command.
      options.vault = value.hasPrefix("~/") ? (Environment.value("HOME") ?? "~") + value.dropFirst() : value
    default:
      options.backend = BackendArgument(argument: value)
      if options.backend == nil { isUnknown = true }
    }
  }

  /// The texts of that kind in the store that the line selects.
  func texts(for value: CompletedValue) -> [String] {
    if isUnknown { return [] }
    let service = service ?? Environment.value("COFFER_SERVICE") ?? GlobalOptions.defaultService
    do {
      // The Tab key must never cause a prompt or a delay.
      let backend = try UnreadableItems.leaveOut(of: options.open(CofferConfiguration.current().unattended))
      switch value {
      case .names, .assignment: return try backend.identifiers(inService: service).map(\.account)
      case .formerNames:
        let removed = try (backend as? any VersionedSecretBackend)?.removedItems(inService: service) ?? []
        return try (backend.identifiers(inService: service) + removed.map(\.identifier)).map(\.account)
      case .services: return Set(try backend.identifiers(inService: nil).map(\.service)).sorted()
      case .keySlots:
        guard let vault = backend as? VaultBackend else { return [] }
        return try VaultBackend.describe(path: vault.path).keySlots.map(\.shortID)
      }
    } catch {
      return []  // a completion cannot show a message; the command itself reports the error
    }
  }
}
