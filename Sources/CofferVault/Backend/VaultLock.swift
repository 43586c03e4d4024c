internal import CofferCore

extension VaultSession {
  /// Runs `body` with the advisory lock of the file that `candidate` returns.
  ///
  /// If another file has taken its place by the time the lock is held, `candidate` is called again. Throws
  /// `.timedOut` at the deadline.
  func withLock<R: ~Copyable>(
    exclusive: Bool, of candidate: () throws(SecretError) -> VaultFile,
    _ body: (VaultFile) throws(SecretError) -> R
  ) throws(SecretError) -> R {
    let timeout = chain.options.lockTimeout
    let deadline = environment.uptime() + timeout
    while true {
      let file = try candidate()
      try acquireLock(of: file.storage, exclusive: exclusive)
      defer {
        do throws(SecretError) { try file.storage.unlock() } catch {
          // Closing the file releases the lock as well.
          shared.close()
        }
      }
      if try file.isCurrent() { return try body(file) }
      guard environment.uptime() < deadline else {
        throw SecretError(
          .timedOut, "The vault at \(path) was replaced repeatedly for \(timeout).", advice: "Try again.")
      }
    }
  }

  private func acquireLock(of file: StorageFile, exclusive: Bool) throws(SecretError) {
    let timeout = chain.options.lockTimeout
    let deadline = environment.uptime() + timeout
    var pause = Duration.microseconds(500)
    while try !file.tryLock(exclusive: exclusive) {
      guard environment.uptime() < deadline else {
        throw SecretError(
          .timedOut, "Another process kept the vault at \(path) busy for \(timeout).",
          advice: "Try again; if it happens repeatedly, see which process has the file open.")
      }
      environment.sleep(pause)
      pause = min(pause * 1.5, .milliseconds(10))
    }
  }
}
