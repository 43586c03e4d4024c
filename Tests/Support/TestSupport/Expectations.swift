package import CofferCore
package import Testing

/// Waits until the condition holds: a minute at most, which no machine needs.
package func eventually(
  _ otherwise: String,
  sourceLocation: SourceLocation = #_sourceLocation,
  _ condition: () throws -> Bool
) async throws {
  for _ in 0..<12_000 {
    if try condition() { return }
    try await Task.sleep(for: .milliseconds(5))
  }
  Issue.record("\(otherwise) within a minute", sourceLocation: sourceLocation)
}

/// The error that `body` throws.
package func thrown(_ body: () throws(SecretError) -> Void) -> SecretError? {
  do throws(SecretError) {
    try body()
    return nil
  } catch {
    return error
  }
}

extension SecretBackend {
  /// Writes past every value, as another process does.
  package func write(_ text: String, _ account: String, service: String = "tests") throws {
    try store(SecretBytes(copying: text), for: SecretIdentifier(service: service, account: account))
  }

  package func text(_ account: String, service: String = "tests") throws -> String? {
    try lookUp(SecretIdentifier(service: service, account: account))?.string()
  }
}
