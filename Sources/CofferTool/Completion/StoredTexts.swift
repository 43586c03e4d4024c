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
    let names = (option.names ?? []).map(\.text)
    guard let selecting = ["--service", "--vault", "--collection", "--backend"].first(where: names.contains)
    else { return }
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

  func names() -> [String] {
    stored { try $0.identifiers(inService: selectedService).map(\.account) }
  }

  /// The names of secrets and of removed secrets. A backend without a history has none of the latter.
  func formerNames() -> [String] {
    names()
      + stored { backend in
        guard let backend = backend as? any VersionedSecretBackend else { return [] }
        return try backend.removedItems(inService: selectedService).map(\.identifier.account)
      }
  }

  func services() -> [String] {
    Set(stored { try $0.identifiers(inService: nil).map(\.service) }).sorted()
  }

  private var selectedService: String {
    service ?? Environment.value("COFFER_SERVICE") ?? GlobalOptions.defaultService
  }

  func keySlots() -> [String] {
    stored { backend in
      guard let vault = backend as? VaultBackend else { return [] }
      return try VaultBackend.describe(path: vault.path).keySlots.map(\.shortID)
    }
  }

  /// What `list` returns for the backend that the line selects.
  private func stored(_ list: (any SecretBackend) throws -> [String]) -> [String] {
    if isUnknown { return [] }
    do {
      // The Tab key must never cause a prompt or a delay.
      return try list(UnreadableItems.leaveOut(of: options.open(CofferConfiguration.current().unattended)))
    } catch {
      return []  // a completion cannot show a message; the command itself reports the error
    }
  }
}
