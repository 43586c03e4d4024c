import Foundation

/// Runs `body` with a umask that other threads do not see: tests run at the same time in one process.
@discardableResult
package func withUmask<R: Sendable>(_ mask: UInt32, _ body: @escaping @Sendable () throws -> R) throws -> R {
  // glibc declares unshare(2) only for _GNU_SOURCE.
  typealias Unshare = @convention(c) (Int32) -> Int32
  guard let symbol = dlsym(nil, "unshare") else { throw TestFailure("there is no unshare(2)") }
  let unshare = unsafeBitCast(symbol, to: Unshare.self)
  let fileSystemAttributes: Int32 = 0x200  // CLONE_FS
  let outcome = Outcome<R>()
  let ended = DispatchSemaphore(value: 0)
  Thread {
    if unshare(fileSystemAttributes) == 0 {
      _ = umask(mask)
      outcome.result = Result { try body() }
    }
    ended.signal()
  }.start()
  ended.wait()
  guard let result = outcome.result else { throw TestFailure("unshare(2) failed") }
  return try result.get()
}

private final class Outcome<R: Sendable>: @unchecked Sendable {
  var result: Result<R, any Error>?
}
