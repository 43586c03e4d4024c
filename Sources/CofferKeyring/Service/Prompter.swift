#if Keyring
internal import CofferCore
internal import Synchronization

/// Called on the thread that will wait for a prompt. The closure that it returns is called after the wait.
typealias PromptObserver = @Sendable () -> () -> Void

/// Shows prompts of the service and waits until they are completed.
///
/// The wait has a timeout only if the options set one, because a person may be typing. The wait also ends when the
/// prompt is dismissed, when the service or the bus goes away, and at ``cancelAll()``.
final class Prompter: Sendable {
  private let mayPrompt: Bool
  private let timeout: Duration?
  private let cancellations = Atomic(0)
  private let observer = Mutex<PromptObserver?>(nil)

  /// `timeout` is the time in which a person must answer a prompt. `nil` means no limit.
  init(mayPrompt: Bool, timeout: Duration?) { (self.mayPrompt, self.timeout) = (mayPrompt, timeout) }

  func observe(_ observer: @escaping PromptObserver) { self.observer.withLock { $0 = observer } }

  /// Ends every wait in progress. Each throws `.promptDismissed`.
  func cancelAll() { cancellations.add(1, ordering: .relaxed) }

  /// Shows `prompt` and returns its result, or returns `nil` if `prompt` is `nil`. Throws `refusal` if prompts are not
  /// allowed.
  @discardableResult
  func complete(
    _ prompt: String?, of service: SecretServiceProxy, refusal: ServiceFailure = .locked
  ) throws(ServiceFailure) -> Variant? {
    guard let prompt else { return nil }
    guard mayPrompt else {
      service.dismiss(prompt)
      throw refusal
    }
    // Read before the observer is called, because the observer may cancel at once.
    let cancellation = cancellations.load(ordering: .relaxed)
    let end = observer.withLock { $0 }?()
    defer { end?() }
    let context = EventContext()
    return try context.asCurrent { () throws(ServiceFailure) in
      defer { service.bus.deliverLast(on: context) }
      return try result(of: prompt, of: service, on: context, since: cancellation)
    }
  }

  /// Shows `prompt`, with which the service may ask for permission to create or delete an item of an unlocked
  /// collection.
  ///
  /// KeePassXC has a prompt for each such change, but asks the user only if its settings say so. If prompts are not
  /// allowed, this waits three seconds for the prompt to complete by itself, then dismisses it and throws `.locked`.
  @discardableResult
  func confirm(_ prompt: String?, of service: SecretServiceProxy) throws(ServiceFailure) -> Variant? {
    guard let prompt else { return nil }
    if mayPrompt { return try complete(prompt, of: service) }
    let prompter = Prompter(mayPrompt: true, timeout: .seconds(3))
    do throws(ServiceFailure) {
      return try prompter.complete(prompt, of: service)
    } catch .error(let error) where error.code == .timedOut || error.code == .promptDismissed {
      throw .error(
        .locked, "The keyring asks for a confirmation of the change, and prompts are not allowed.",
        advice: "Allow prompts, or turn off the confirmation in the keyring's settings.")
    }
  }

  /// `cancellation` is the number of cancellations before the observer was called.
  private func result(
    of prompt: String, of service: SecretServiceProxy, on context: EventContext, since cancellation: Int
  ) throws(ServiceFailure) -> Variant {
    var completed: (isDismissed: Bool, result: Variant)?
    var isServiceGone = false
    let completion = SignalSubscription(
      service.bus, sender: service.name, interface: SecretServiceProxy.Interface.prompt.rawValue,
      member: "Completed", path: prompt
    ) { _, arguments in
      guard let isDismissed = arguments[0]?.boolean, let result = arguments[1]?.unboxed else { return }
      completed = (isDismissed, result)
    }
    let owner = SignalSubscription(ownersOf: service.name, on: service.bus) { _, _ in isServiceGone = true }
    defer { withExtendedLifetime((completion, owner)) {} }
    _ = try service.call(prompt, .prompt, "Prompt", [.string("")])
    // A person may be typing.
    let start = ContinuousClock.now
    defer { service.deadline?.leaveOut(since: start) }
    let deadline = timeout.map { Deadline(after: $0) }
    while true {
      if let (isDismissed, result) = completed {
        if isDismissed { throw Self.canShow(service) ? Self.dismissed : Self.noProgram }
        return result
      }
      if isServiceGone || service.bus.isClosed {
        throw .error(.unavailable, "The keyring stopped while it showed a prompt.", advice: "Try again.")
      }
      if cancellations.load(ordering: .relaxed) != cancellation {
        service.dismiss(prompt)
        throw Self.dismissed
      }
      if let timeout, let deadline, deadline.hasPassed {
        service.dismiss(prompt)
        throw .error(
          .timedOut, "The keyring's prompt was not answered within \(timeout).",
          advice: "Unlock the keyring, then try again.")
      }
      // A signal ends the wait at once. A cancellation and a closed bus are noticed after this time.
      context.iterate(timeout: .milliseconds(100))
    }
  }

  /// Whether the service can show prompts, as far as that can be known: gnome-keyring leaves it to another program, and
  /// dismisses its prompts if there is none.
  private static func canShow(_ service: SecretServiceProxy) -> Bool {
    func ask(_ method: String, _ arguments: [Variant] = []) throws(ServiceFailure) -> Variant? {
      try service.bus.callBus(method, arguments, by: Deadline(after: min(service.timeout, .seconds(1))))[0]
    }
    do throws(ServiceFailure) {
      let prompter = "org.gnome.keyring.SystemPrompter"
      guard try ask("GetNameOwner", [.string("org.gnome.keyring")])?.string == service.name else { return true }
      if try ask("NameHasOwner", [.string(prompter)])?.boolean != false { return true }
      return try ask("ListActivatableNames")?.strings?.contains(prompter) != false
    } catch {
      return true  // the service is not gnome-keyring, or the bus did not answer
    }
  }

  private static let dismissed = ServiceFailure.error(
    .promptDismissed, "The keyring's prompt was dismissed.",
    advice: "Unlock the keyring in the desktop session, or try again and answer the prompt.")

  private static let noProgram = ServiceFailure.error(
    .locked, "The keyring is locked, and no program on the session bus can show its prompt for the password.",
    advice:
      "Unlock the keyring in the desktop session, or install gcr, which shows the prompts of gnome-keyring.")
}
#endif
