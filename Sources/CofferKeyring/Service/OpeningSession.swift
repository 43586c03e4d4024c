#if Keyring
internal import CofferCore
internal import Dispatch

/// A session that is being opened. Its path is known before its key.
final class OpeningSession: Sendable {
  private final class Answer: @unchecked Sendable {  // `path` is set before `hasArrived` is signalled
    let isRequested = DispatchSemaphore(value: 0)
    let hasArrived = DispatchSemaphore(value: 0)
    var path: String?

    func end() {
      isRequested.signal()
      hasArrived.signal()
    }
  }

  private let answer: Answer
  private let call: CancellableCall<SecretSession>

  /// Begins on a thread of its own, which waits for each answer of the service for at most `service.timeout`.
  init(_ negotiation: SessionNegotiation, with service: SecretServiceProxy) {
    let answer = Answer()
    self.answer = answer
    call = CancellableCall { cancellable throws(ServiceFailure) in
      defer { answer.end() }
      return try negotiation.complete(within: service.timeout) { arguments throws(ServiceFailure) in
        try service.openSession(arguments, cancellable) { answer.isRequested.signal() }
      } answered: { path in
        answer.path = path
        answer.hasArrived.signal()
      }
    }
    if !call.isStarted { answer.end() }
  }

  /// Waits until GDBus has the request for the session and will send it, or until it is known that there will be no
  /// request. Waits for at most `timeout`.
  func waitForRequest(within timeout: Duration) {
    let deadline = DispatchTime.now() + .milliseconds(Int(BusConnection.milliseconds(timeout)))
    _ = answer.isRequested.wait(timeout: deadline)
  }

  /// The path of the session. `nil` if the service does not tell one within `timeout`, or as soon as the session cannot be
  /// opened: ``result(within:)`` throws why.
  func path(within timeout: Duration) -> String? {
    let deadline = DispatchTime.now() + .milliseconds(Int(BusConnection.milliseconds(timeout)))
    guard answer.hasArrived.wait(timeout: deadline) == .success else { return nil }
    answer.hasArrived.signal()  // for the next caller
    return answer.path
  }

  /// Waits for the session. To be called once.
  func result(within timeout: Duration) throws(ServiceFailure) -> SecretSession {
    try call.result(within: timeout)
  }
}
#endif
