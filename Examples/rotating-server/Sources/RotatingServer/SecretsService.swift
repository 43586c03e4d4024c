import Coffer
import ServiceLifecycle

/// Closes the store when the server ends.
struct SecretsService: Service {
  let backend: any SecretBackend

  func run() async throws {
    // If another service has failed, the group is cancelled, and the store is closed all the same.
    try? await gracefulShutdown()
    try await backend.perform { try $0.close() }
  }
}
