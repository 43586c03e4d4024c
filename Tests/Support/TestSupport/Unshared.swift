import Foundation

/// Runs `body` with a umask that other threads do not see: tests run at the same time in one process.
@discardableResult
package func withUmask<R: Sendable>(_ mask: UInt32, _ body: @escaping @Sendable () throws -> R) throws -> R {
  try withOwnFileSystemAttributes {
    _ = umask(mask)
    return try body()
  }
}

/// Runs `body` in a working directory that other threads do not see.
package func withWorkingDirectory<R: Sendable>(
  _ path: String, _ body: @escaping @Sendable () throws -> R
) throws -> R {
  try withOwnFileSystemAttributes {
    if chdir(path) != 0 { throw TestFailure("chdir(2) failed: \(errno)") }
    return try body()
  }
}

private func withOwnFileSystemAttributes<R: Sendable>(
  _ body: @escaping @Sendable () throws -> R
) throws -> R {
  typealias Unshare = @convention(c) (Int32) -> Int32
  let unshare = try unsafeBitCast(function("unshare"), to: Unshare.self)
  let fileSystemAttributes: Int32 = 0x200  // CLONE_FS
  return try onAnotherThread {
    if unshare(fileSystemAttributes) != 0 { throw TestFailure("unshare(2) failed") }
    return try body()
  }
}

/// Runs `body` without any open descriptor, as in a program whose standard streams are closed. Other threads keep
/// theirs.
///
/// Expectations belong after the call, because their failures are printed.
package func withoutDescriptors<R: Sendable>(_ body: @escaping @Sendable () throws -> R) throws -> R {
  typealias CloseRange = @convention(c) (UInt32, UInt32, Int32) -> Int32
  let close = try unsafeBitCast(function("close_range"), to: CloseRange.self)
  let unshare: Int32 = 2  // CLOSE_RANGE_UNSHARE
  return try onAnotherThread {
    if close(0, .max, unshare) != 0 { throw TestFailure("close_range(2) failed") }
    return try body()
  }
}

/// Runs `body` with the access to files that another user has, if this process belongs to root. Other threads keep
/// theirs.
package func withFileAccess<R: Sendable>(
  ofUser user: UInt32, _ body: @escaping @Sendable () throws -> R
) throws -> R {
  typealias SetUser = @convention(c) (UInt32) -> Int32
  let setUser = try unsafeBitCast(function("setfsuid"), to: SetUser.self)
  return try onAnotherThread {
    if geteuid() == 0 { _ = setUser(user) }
    return try body()
  }
}

/// A function that glibc declares only for _GNU_SOURCE.
private func function(_ name: String) throws -> UnsafeMutableRawPointer {
  guard let symbol = dlsym(nil, name) else { throw TestFailure("there is no \(name)") }
  return symbol
}

private final class Outcome<R: Sendable>: @unchecked Sendable {
  var result: Result<R, any Error>?
}

private func onAnotherThread<R: Sendable>(_ body: @escaping @Sendable () throws -> R) throws -> R {
  let outcome = Outcome<R>()
  let ended = DispatchSemaphore(value: 0)
  Thread {
    outcome.result = Result { try body() }
    ended.signal()
  }.start()
  ended.wait()
  guard let result = outcome.result else { throw TestFailure("the thread did not run") }
  return try result.get()
}
