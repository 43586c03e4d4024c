import Coffer
import ServiceLifecycle

/// Stores the delayed changes and closes the store when the server ends.
struct SecretsService: Service {
  let backend: any SecretBackend

  func run() async throws {
    // If another service has failed, the group is cancelled, and the changes are stored all the same.
    try? await gracefulShutdown()
    // In a task of its own, which that cancellation does not reach.
    try await Task {
      try await DelayedSaves.flush()
      try await backend.perform { try $0.close() }
    }.value
  }
}
