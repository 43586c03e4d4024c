internal import CofferConfiguration
public import CofferCore
internal import Synchronization

/// The backend of values that are created without a backend: one object for the whole process.
///
/// `BackendConfiguration` chooses the backend at the first use. A program can replace it for the process, and a test
/// for a task and its child tasks. A value asks for the backend at each use, so a value in a global constant follows a
/// replacement too. Thread-safe.
public enum DefaultBackend {
  @TaskLocal static var ofTask: BackendSource?
  private static let replacement = Mutex<BackendSource?>(nil)
  private static let isOnlyInScopes = Atomic(false)

  /// The backend that the environment and the configuration file name.
  static let configured = BackendSource { () throws(SecretError) in
    try BackendConfiguration.current().backend()
  }

  /// Refuses every use.
  private static let outsideOfScopes = BackendSource { () throws(SecretError) in
    throw SecretError(
      .noBackend, "This code runs outside of every scope of DefaultBackend.withOnly, such as in a detached task.",
      advice: "Give its values a backend, or run it in DefaultBackend.withOnly(_:).")
  }

  static var source: BackendSource {
    if let source = ofTask ?? replacement.withLock({ $0 }) { return source }
    if Self.isOnlyInScopes.load(ordering: .acquiring), !BackendConfiguration.current().namesBackend {
      return outsideOfScopes
    }
    return configured
  }

  /// Returns the backend that values without one use now: that of the task, of the process, or of the configuration.
  ///
  /// Throws `.noBackend` and `.configuration` if the configuration names none.
  public static func current() throws(SecretError) -> any SecretBackend { try source.resolve() }

  /// Like the synchronous `current()`, on a thread for blocking calls: the first use may wait for the session bus.
  public static func current() async throws(SecretError) -> any SecretBackend {
    try await offPool { () throws(SecretError) in try source.resolve() }
  }

  /// Replaces the backend for the process, or restores that of the configuration if `backend` is `nil`.
  ///
  /// Call it at the start of the program. A stream of ``SecurelyStoredValue/values`` or of ``Store/events`` that has
  /// begun stays with its backend.
  public static func replace(with backend: (any SecretBackend)?) {
    let source = backend.map { BackendSource(given: $0) }
    replacement.withLock { $0 = source }
  }

  package static func with<R>(_ backend: any SecretBackend, operation: () throws -> R) rethrows -> R {
    let source = BackendSource(given: backend)
    defer { source.releaseKept() }
    return try $ofTask.withValue(source, operation: operation)
  }

  package static func with<R>(
    _ backend: any SecretBackend, isolation: isolated (any Actor)? = #isolation,
    operation: () async throws -> R
  ) async rethrows -> R {
    let source = BackendSource(given: backend)
    defer { source.releaseKept() }
    return try await $ofTask.withValue(source, operation: operation, isolation: isolation)
  }

  /// Runs a test's `operation` with a backend for its task and child tasks, and protects the real store of the person
  /// who runs the tests. Throws what `operation` throws.
  ///
  /// Detached tasks, Dispatch queues and threads are outside of the scope. From the first call until the process ends,
  /// code outside of a scope has no default backend: each use throws `.noBackend`, unless the
  /// program calls ``replace(with:)`` or `COFFER_BACKEND` names a backend.
  public static func withOnly<R>(_ backend: any SecretBackend, operation: () throws -> R) rethrows -> R {
    isOnlyInScopes.store(true, ordering: .releasing)
    return try with(backend, operation: operation)
  }

  /// Runs a test's `operation`, as the method without `async` does.
  public static func withOnly<R>(
    _ backend: any SecretBackend, isolation: isolated (any Actor)? = #isolation,
    operation: () async throws -> R
  ) async rethrows -> R {
    isOnlyInScopes.store(true, ordering: .releasing)
    return try await with(backend, operation: operation)
  }

  /// Runs `body`, which uses `source` or else the default backend, on a thread for blocking calls, with the backend of
  /// this task.
  package static func offPool<R: Sendable, E: Error>(
    _ source: BackendSource? = nil, _ body: @escaping @Sendable () throws(E) -> R
  ) async throws(E) -> R {
    let (ofTask, source) = (ofTask, source ?? Self.source)
    return try await CallThreads.shared.run(for: source.backend ?? source) {
      $ofTask.withValue(ofTask) { Result { () throws(E) in try body() } }
    }.get()
  }
}
