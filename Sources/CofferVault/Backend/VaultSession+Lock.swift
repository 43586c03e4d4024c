internal import CofferCore

extension VaultSession {
  /// Locks the file that `candidate` returns and runs `body`. Does both again if `body` returns `nil`.
  ///
  /// If another file has taken its place by the time the lock is held, `candidate` is called again. Throws `.timedOut`
  /// at the deadline.
  func withLock<R: ~Copyable>(
    exclusive: Bool, of candidate: () throws(SecretError) -> VaultFile,
    _ body: (VaultFile) throws(SecretError) -> R?
  ) throws(SecretError) -> R {
    var end: Duration?
    while true {
      if end != nil { environment.sleep(.milliseconds(5)) }
      let file = try candidate()
      // Not earlier: a person may have typed a passphrase until now.
      let deadline = end ?? environment.uptime() + lockTimeout
      end = deadline
      try acquireLock(of: file.storage, exclusive: exclusive, until: deadline)
      defer {
        do throws(SecretError) { try file.storage.unlock() } catch {
          // Closing the file releases the lock as well.
          close()
        }
      }
      if try file.storage.isCurrent(), let result = try body(file) { return result }
      guard environment.uptime() < deadline else {
        throw SecretError(
          .timedOut, "Other programs changed the vault at \(path) again and again for \(lockTimeout).",
          advice: "Try again.")
      }
    }
  }

  private func acquireLock(
    of file: any MediumFile, exclusive: Bool, until deadline: Duration
  ) throws(SecretError) {
    var pause = Duration.microseconds(500)
    while try !file.tryLock(exclusive: exclusive) {
      guard environment.uptime() < deadline else {
        throw SecretError(
          .timedOut, "Another process kept the vault at \(path) busy for \(lockTimeout).",
          advice: "Try again; if it happens repeatedly, see which process has the file open.")
      }
      environment.sleep(pause)
      pause = min(pause * 1.5, .milliseconds(10))
    }
  }
}
