import Foundation
import Synchronization
import TokenStore

/// A login service that answers what a test says. Thread-safe.
final class ScriptedLogin: LoginService {
  typealias Answer = @Sendable (_ refreshToken: String) async throws -> Token

  private let state: Mutex<(given: [String], answer: Answer)>

  init(_ answer: @escaping Answer = { .valid("after \($0)") }) { state = Mutex(([], answer)) }

  /// The refresh tokens that the service was given.
  var given: [String] { state.withLock { $0.given } }

  func answer(with answer: @escaping Answer) { state.withLock { $0.answer = answer } }

  func refresh(_ refreshToken: String) async throws -> Token {
    let answer = state.withLock { state in
      state.given.append(refreshToken)
      return state.answer
    }
    return try await answer(refreshToken)
  }
}

/// Keeps tasks waiting until it is opened. Thread-safe.
final class Gate: Sendable {
  private let stream: AsyncStream<Void>
  private let continuation: AsyncStream<Void>.Continuation

  init() { (stream, continuation) = AsyncStream.makeStream() }

  func open() { continuation.finish() }

  /// Waits until the gate is open, even in a task that is cancelled.
  func wait() async {
    await Task { for await _ in stream {} }.value
  }
}

extension Token {
  /// A token with the name `name` that is good for an hour.
  static func valid(_ name: String) -> Token { expiring(in: 3600, name) }

  static func expired(_ name: String) -> Token { expiring(in: -1, name) }

  static func expiring(in seconds: TimeInterval, _ name: String) -> Token {
    Token(accessToken: "access \(name)", refreshToken: name, expires: .now + seconds, scope: "read")
  }
}

struct NetworkFailure: Error {}
