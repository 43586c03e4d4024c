internal import ArgumentParser
internal import Coffer

/// Names and services for completion, with the options that select them on the unfinished line. There are none
/// unless the backend opens without a prompt and without stretching a passphrase.
struct StoredTexts {
  private var options = BackendOptions(backend: nil)
  private var service: String?
  /// Whether an option's value is known only to the shell, so that another store could be meant.
  private var isUnknown = false

  /// Takes over an option on the line, if it selects the store or the service.
  mutating func select(_ option: CommandDescription.Argument, _ value: String?) {
    let names = (option.names ?? []).map(\.text)
    guard let selecting = ["--service", "--vault", "--collection", "--backend"].first(where: names.contains) else { return }
    guard let value else { return isUnknown = true }
    switch selecting {
    case "--service": service = value
    case "--collection": options.collection = value
    case "--vault": options.vault = Self.expanded(value)
    default:
      options.backend = BackendName(argument: value)
      if options.backend == nil { isUnknown = true }
    }
  }

  /// Shells expand a tilde only when they run the command.
  private static func expanded(_ path: String) -> String {
    guard path.hasPrefix("~/"), let home = Environment.value("HOME") else { return path }
    return home + path.dropFirst()
  }

  func names() -> [String] {
    let selected = service ?? Environment.value("COFFER_SERVICE") ?? GlobalOptions.defaultService
    return identifiers(inService: selected).map(\.account)
  }

  func services() -> [String] { Set(identifiers(inService: nil).map(\.service)).sorted() }

  func keySlots() -> [String] {
    do {
      guard !isUnknown, let vault = try options.open() as? VaultBackend else { return [] }
      return try VaultBackend.describe(path: vault.path).keySlots.map(\.shortID)
    } catch {
      return []
    }
  }

  private func identifiers(inService service: String?) -> [SecretIdentifier] {
    if isUnknown { return [] }
    do {
      // The Tab key must never cause a prompt or a delay.
      return try options.open(CofferConfiguration.current().unattended).identifiers(inService: service)
    } catch {
      return []  // a completion cannot show a message; the command itself reports the error
    }
  }
}
