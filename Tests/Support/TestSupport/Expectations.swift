package import CofferCore
internal import Foundation
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

/// The ids of the processes of a group, without those that have ended and are not collected yet.
package func processes(ofGroup group: Int32) throws -> [String] {
  try FileManager.default.contentsOfDirectory(atPath: "/proc").filter { Int($0) != nil }.filter {
    guard let status = FileManager.default.contents(atPath: "/proc/\($0)/stat") else { return false }
    let fields =
      String(decoding: status, as: UTF8.self).split(separator: ")").last?.split(separator: " ") ?? []
    return fields.count > 2 && fields[2] == "\(group)" && fields[0] != "Z"
  }
}
