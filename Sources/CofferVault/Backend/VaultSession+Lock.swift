internal import CofferCore
internal import CofferSystem

extension VaultSession {
  /// Locks the file that `candidate` returns and runs `body`. Does both again if `body` returns `nil`.
  ///
  /// If another file has taken its place by the time the lock is held, `candidate` is called again. Throws `.timedOut`
  /// at the deadline.
  func withLock<R: ~Copyable>(
    exclusive: Bool, of candidate: () throws(SecretError) -> VaultFile,
    _ body: (VaultFile) throws(SecretError) -> R?
  ) throws(SecretError) -> R {
    var (end, pause): (Duration?, _) = (nil, Duration.milliseconds(5))
    while true {
      if end != nil {
        // A random pause, so that writers that were refused together do not all come back together.
        environment.sleep(pause * Int(environment.randomness.array(1)[0]) / 256)
        pause = min(pause * 2, .milliseconds(640))
      }
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
      if try isCurrent(file), let result = try body(file) { return result }
      guard environment.uptime() < deadline else {
        throw SecretError(
          .timedOut, "Other programs changed the vault at \(path) again and again for \(lockTimeout).",
          advice: "Try again.")
      }
    }
  }

  private func isCurrent(_ file: VaultFile) throws(SecretError) -> Bool {
    // A remote file that is not current any more refuses the change, which saves a question.
    if file.storage.isRemote { return true }
    return try file.storage.current() != nil
  }

  private func acquireLock(of file: any MediumFile, exclusive: Bool, until deadline: Duration) throws(SecretError) {
    var pause = Duration.microseconds(500)
    while try !file.tryLock(exclusive: exclusive) {
      guard environment.uptime() < deadline else {
        let holder = holderOfLock(onFile: path).map { ", \($0)," } ?? ""
        throw SecretError(
          .timedOut, "Another process\(holder) kept the vault at \(path) busy for \(lockTimeout).",
          advice: "Try again; if it happens repeatedly, see which process has the file open.")
      }
      environment.sleep(pause)
      pause = min(pause * 1.5, .milliseconds(10))
    }
  }
}
