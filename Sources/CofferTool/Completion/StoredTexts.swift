internal import ArgumentParser
internal import Coffer

/// Names and services for completion, with the options that select them on the unfinished line. There are none unless
/// the backend opens without a prompt and without stretching a passphrase.
struct StoredTexts {
  private var options: [String] = []
  /// Whether only the shell knows the value of an option, and so which store is selected.
  private var isUnknown = false

  /// Adds an option of the line, if it selects the store or the service.
  mutating func select(_ option: CommandDescription.Argument, _ value: String?) {
    let names = ["--service", "--vault", "--collection", "--backend"]
    guard let name = names.first(where: option.texts.contains) else { return }
    guard var value else { return isUnknown = true }
    // Shells expand a tilde only when they run the command.
    let home = Environment.value("HOME")
    if name == "--vault", value.hasPrefix("~/"), let home { value = home + value.dropFirst() }
    options.append("\(name)=\(value)")
  }

  /// The texts of that kind in the store that the line selects.
  func texts(for value: CompletedValue) -> [String] {
    if isUnknown { return [] }
    do {
      let options = try GlobalOptions.parse(options)
      let service = SecretReference.service(options.service)
      // The Tab key must never cause a prompt or a delay.
      let backend = try UnreadableItems.leaveOut(of: BackendOptions.open(options.selected(), .current().unattended))
      switch value {
      case .names, .assignment: return try backend.identifiers(inService: service).map(\.account)
      case .formerNames: return try backend.formerIdentifiers(inService: service).map(\.account)
      case .services: return Set(try backend.identifiers(inService: nil).map(\.service)).sorted()
      case .keySlots: return try (backend as? VaultBackend)?.description().keySlots.map(\.shortID) ?? []
      }
    } catch {
      return []  // a completion cannot show a message; the command itself reports the error
    }
  }
}
