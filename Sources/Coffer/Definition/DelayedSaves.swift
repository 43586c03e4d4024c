public import CofferCore
internal import CofferLibc
internal import Synchronization

/// The changes that wait for a ``VaultStorable/saveDelay`` and are not stored yet.
public enum DelayedSaves {
  /// Stores all of these changes now. Tries each of them, and then throws the first error. A change that could not be
  /// stored is tried again later. Blocks as long as the backends do. Thread-safe.
  ///
  /// `exit` and the end of `main` do this by themselves. Call it before `_exit` and `execve`, and when a signal asks
  /// the program to end, but not in the handler that `sigaction` installs.
  public static func flush() throws(SecretError) {
    if let error = DelayedSaveQueue.shared.flush().first { throw error }
  }

  /// Stores all of these changes now. The wait blocks no thread. Throws like the method without `async`.
  public static func flush() async throws(SecretError) {
    try await DefaultBackend.offPool { () throws(SecretError) in try flush() }
  }
}

/// The hubs with a change that is not stored yet, each with the task that will store it. Thread-safe.
final class DelayedSaveQueue: Sendable {
  static let shared = DelayedSaveQueue()

  /// A hub and its task. The hub is kept alive so that all objects of the value find the change.
  private typealias Entry = (hub: ValueHub, timer: Task<Void, Never>)
  private let entries = Mutex<[ObjectIdentifier: Entry]>([:])

  /// Stores the hub's change after its delay, which begins at the first call.
  func add(_ hub: ValueHub, _ delayed: DelayedSave) {
    EndOfProcess.run { DelayedSaveQueue.shared.finish() }
    WaitingChanges.storeBeforeClose { backend throws(SecretError) in
      if let error = DelayedSaveQueue.shared.flush({ $0.source.backend === backend }).first { throw error }
    }
    entries.withLock { entries in
      if entries[ObjectIdentifier(hub)] == nil {
        entries[ObjectIdentifier(hub)] = (hub, timer(hub, after: delayed.delay))
      }
    }
  }

  private func timer(_ hub: ValueHub, after pause: Duration) -> Task<Void, Never> {
    Task.detached {
      do { try await Task.sleep(for: pause) } catch { return }
      await CallThreads.shared.run(for: hub.source) {
        do throws(SecretError) { try self.flush(hub) } catch {
          // `lastError` of the values returns the error. The change waits for another attempt.
        }
        // A newer change, or one that could not be stored, needs another timer.
        self.entries.withLock { entries in
          guard let delay = hub.delayed?.delay else { return }
          entries[ObjectIdentifier(hub)]?.timer = self.timer(hub, after: max(delay, .seconds(1)))
        }
      }
    }
  }

  func flush(_ hub: ValueHub) throws(SecretError) {
    try hub.flush()
    let ended = entries.withLock { entries in
      // A change that was made during the save keeps waiting.
      hub.delayed?.waiting == nil ? entries.removeValue(forKey: ObjectIdentifier(hub)) : nil
    }
    ended?.timer.cancel()
  }

  /// Tries to store the changes of all hubs that satisfy the condition, and returns the errors.
  func flush(_ isIncluded: (ValueHub) -> Bool = { _ in true }) -> [SecretError] {
    let hubs = entries.withLock { $0.values.map(\.hub) }.filter(isIncluded)
    var errors: [SecretError] = []
    for hub in hubs {
      do throws(SecretError) { try flush(hub) } catch { errors.append(error) }
    }
    return errors
  }

  /// Stores everything at the end of the process, and prints what is lost.
  private func finish() {
    for error in flush() {
      // A name may contain characters that control a terminal.
      let name = error.identifier.map { String(reflecting: $0.description) } ?? "a value"
      printDiagnosis("The last change of \(name) is lost: \(error)")
    }
  }
}

/// Prints a line on standard error, for the author of the program.
func printDiagnosis(_ text: String) {
  _ = (text + "\n").utf8.span.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
}
