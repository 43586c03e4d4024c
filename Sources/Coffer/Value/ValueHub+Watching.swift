internal import CofferCore
internal import Synchronization

extension ValueHub {
  /// Starts the watch of the store's changes if it has not started. Concurrent callers block until it has. Returns the
  /// error of a store that cannot be reached yet.
  func watch() -> SecretError? {
    do throws(SecretError) {
      return try watchStart.withLock(timeout: .seconds(10)) { () throws(SecretError) in
        guard state.withLock({ $0.watch == nil }) else { return nil }
        do throws(SecretError) {
          if let changes = try self.changes() { follow(changes) }
          return nil
        } catch {
          follow(nil)
          return error
        }
      }
    } catch {
      // The lock was not free in time: the store's `changes()` takes too long, or it reads this value and so waits for
      // itself. This call then starts no watch.
      return nil
    }
  }

  /// Starts a task that reads the value again after each change that the hub has not made. Without a stream of changes,
  /// the task asks the store for one after each pause. It does not keep the hub alive.
  private func follow(_ changes: AsyncStream<SecretChange>?) {
    let (source, identifier, own) = (source, identifier, ObjectIdentifier(self))
    let pause = source.retryPause
    let task = Task { [weak self] in
      var stream = changes
      while stream == nil {
        do { try await Task.sleep(for: pause) } catch { return }
        guard let hub = self else { return }
        if case .success(let changes) = await CallThreads.shared.run(for: hub.source, { hub.retry() }) {
          guard let changes else { return }
          stream = changes
        }
      }
      guard let stream else { return }
      for await change in stream where change.origin != own {
        if let changed = change.identifier, changed != identifier { continue }
        var next = pause
        while await CallThreads.shared.run(for: source, { [weak self] in self?.readAgain() == false }) {
          do { try await Task.sleep(for: next) } catch { return }
          next = min(next * 2, .seconds(60))
        }
      }
    }
    state.withLock { $0.watch = task }
  }

  /// Asks the store for its changes again. If it has become reachable, its value is published.
  private func retry() -> Result<AsyncStream<SecretChange>?, SecretError> {
    let changes = Result { () throws(SecretError) in try self.changes() }
    if case .success = changes { readAgain() }
    return changes
  }

  /// Returns `false` if the store cannot be read now, and will not report when it can.
  @discardableResult
  private func readAgain() -> Bool {
    do throws(SecretError) {
      return try inOrder { () throws(SecretError) in
        let reading = readNow(mayPrompt: false)
        // Locking changes no value. The backend reports a change of everything when it is unlocked.
        if case .failure(let error) = reading, error.code == .locked { return true }
        publishIfChanged(to: reading)
        if case .failure = reading { return false }
        return true
      }
    } catch { return false }
  }
}
