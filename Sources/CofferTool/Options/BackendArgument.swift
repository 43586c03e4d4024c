internal import ArgumentParser
internal import Coffer

/// A backend as `copy` names it: `keyring`, `vault`, or `vault:PATH`.
struct BackendArgument: ExpressibleByArgument {
  let name: BackendName
  private let vault: String?

  init?(argument: String) {
    let parts = argument.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard let name = BackendName(argument: String(parts[0])) else { return nil }
    self.name = name
    vault = parts.count == 2 ? String(parts[1]) : nil
    if let vault, name != .vault || vault.isEmpty { return nil }
  }

  /// Returns the backend, without opening it.
  func open() throws -> any SecretBackend { try BackendOptions(backend: name, vault: vault).open() }
}
