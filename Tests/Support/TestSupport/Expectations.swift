package import CofferCore
internal import Glibc
package import Testing

/// Waits until the condition holds, for at most a minute. `failure` is what the test reports otherwise.
package func eventually(
  _ failure: String,
  sourceLocation: SourceLocation = #_sourceLocation,
  _ condition: () throws -> Bool
) async throws {
  for _ in 0..<12_000 {
    if try condition() { return }
    try await Task.sleep(for: .milliseconds(5))
  }
  Issue.record("\(failure) within a minute", sourceLocation: sourceLocation)
}

/// Waits like `eventually`, but blocks the thread, and throws if the condition does not hold within a minute.
package func waitUntil(_ failure: String, _ condition: () throws -> Bool) throws {
  let end = ContinuousClock.now + .seconds(60)
  while try !condition() {
    if ContinuousClock.now > end { throw TestFailure("\(failure) within a minute") }
    usleep(20_000)
  }
}

/// The error that `body` throws, or `nil`.
package func thrown(_ body: () throws(SecretError) -> Void) -> SecretError? {
  do throws(SecretError) {
    try body()
    return nil
  } catch {
    return error
  }
}
