#if ServiceLifecycle
public import Coffer
internal import CofferCore
public import ServiceLifecycle

/// Completes the use of secrets when a server ends: what has not been stored yet is stored, and then the backends are
/// closed.
///
/// A service group ends its services in the reverse of their order. Put this one first, so that it ends after all that
/// use secrets:
///
/// ```swift
/// let group = ServiceGroup(
///   services: [SecretsService(closing: [vault]), server],
///   gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
/// try await group.run()
/// ```
///
/// Set `maximumGracefulShutdownDuration` of the group: a backend waits for other threads and processes as long as its
/// own deadlines allow. Thread-safe.
public struct SecretsService: Service {
  private let backends: [any SecretBackend]
  private let flush: @Sendable () async throws -> Void

  /// Creates the service. `flush` stores what is not stored yet; by default, all delayed saves of the process. It runs
  /// before the backends are closed, in a task that is not cancelled.
  public init(
    closing backends: [any SecretBackend] = [],
    flush: @escaping @Sendable () async throws -> Void = { try await DelayedSaves.flush() }
  ) {
    self.backends = backends
    self.flush = flush
  }

  /// Waits for the end of the group, then flushes and closes. Every step is tried; the first error is thrown.
  public func run() async throws {
    do { try await gracefulShutdown() } catch is CancellationError {
      // The group ends at once, and the secrets must be stored all the same.
    }
    // A task that the cancellation of this one does not reach.
    try await Task { try await finish() }.value
  }

  private func finish() async throws {
    var failure: (any Error)?
    do { try await flush() } catch { failure = error }
    for backend in backends {
      do throws(SecretError) {
        try await backend.perform { backend throws(SecretError) in try backend.close() }
      } catch {
        failure = failure ?? error
      }
    }
    if let failure { throw failure }
  }
}
#else
/// Unavailable, because the trait `ServiceLifecycle` is off.
@available(*, unavailable, message: "Enable the trait ServiceLifecycle of the package coffer.")
public struct SecretsService: Sendable { public init(closing: [Any] = [], flush: Any? = nil) {} }
#endif
