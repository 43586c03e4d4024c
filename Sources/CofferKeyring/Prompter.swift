#if Keyring
internal import CofferCore
internal import Synchronization

/// Asks a person, through the service, and waits for the answer.
///
/// There is no deadline while a person may be typing, unless one is set. The wait ends when the prompt is
/// answered or dismissed, when the service or the bus goes away, or when ``cancelAll()`` is called.
final class Prompter: Sendable {
  private let mayPrompt: Bool
  private let deadline: Double?
  private let cancellations = Atomic(0)

  init(_ options: KeyringOptions) {
    mayPrompt = options.mayPrompt
    deadline = options.promptDeadline
  }

  /// Ends the waits that are under way, each with `.promptDismissed`.
  func cancelAll() { cancellations.add(1, ordering: .relaxed) }

  /// Gives the result of the prompt at `path`. `refusal` is thrown where nobody may be asked.
  func ask(
    _ path: String,
    of service: SecretServiceProxy,
    orThrow refusal: SecretError
  ) throws(ServiceFailure) -> Variant {
    guard mayPrompt else {
      dismiss(path, of: service)
      throw .secret(refusal)
    }
    return try EventContext.scoped { context throws(ServiceFailure) in
      try wait(for: path, of: service, on: context)
    }
  }

  private final class Outcome {
    var completed: (isDismissed: Bool, result: Variant)?
    var isServiceGone = false
  }

  private func wait(
    for path: String,
    of service: SecretServiceProxy,
    on context: EventContext
  ) throws(ServiceFailure) -> Variant {
    let outcome = Outcome()
    let cancellation = cancellations.load(ordering: .relaxed)
    let completed = SignalSubscription(
      service.bus,
      sender: service.owner,
      interface: SecretServiceProxy.Interface.prompt,
      member: "Completed",
      path: path
    ) { signal in
      guard let isDismissed = signal.arguments[0]?.boolean, let result = signal.arguments[1]?.unboxed else {
        return
      }
      outcome.completed = (isDismissed, result)
    }
    let gone = SignalSubscription(
      service.bus,
      sender: "org.freedesktop.DBus",
      interface: "org.freedesktop.DBus",
      member: "NameOwnerChanged",
      firstArgument: service.owner
    ) { _ in outcome.isServiceGone = true }

    return try withExtendedLifetime((completed, gone)) { () throws(ServiceFailure) in
      _ = try service.call(path, SecretServiceProxy.Interface.prompt, "Prompt", [.string("")])
      let end = deadline.map { ContinuousClock.now + .seconds($0) }
      while true {
        if let (isDismissed, result) = outcome.completed {
          if isDismissed { throw Self.dismissed }
          return result
        }
        if outcome.isServiceGone || service.bus.isClosed {
          throw .secret(
            SecretError(
              .unavailable,
              "The keyring stopped while it was asking for a password.",
              advice: "Try again."
            )
          )
        }
        if cancellations.load(ordering: .relaxed) != cancellation {
          dismiss(path, of: service)
          throw Self.dismissed
        }
        if let end, end < .now {
          dismiss(path, of: service)
          throw .secret(
            SecretError(
              .timedOut,
              "Nobody answered the keyring's prompt within \(deadline ?? 0) seconds.",
              advice: "Unlock the keyring, then try again."
            )
          )
        }
        // So often is looked for a cancellation and a closed bus; an answer wakes it at once.
        context.iterate(waitingAtMost: 0.1)
      }
    }
  }

  private static let dismissed = ServiceFailure.secret(
    SecretError(
      .promptDismissed,
      "The keyring's prompt was dismissed.",
      advice: "Try again, and enter the keyring's password."
    )
  )

  /// Takes a prompt away. That it cannot be, since it or the service is gone, comes to the same.
  private func dismiss(_ path: String, of service: SecretServiceProxy) {
    do throws(ServiceFailure) {
      _ = try service.call(path, SecretServiceProxy.Interface.prompt, "Dismiss")
    } catch {}
  }
}
#endif
