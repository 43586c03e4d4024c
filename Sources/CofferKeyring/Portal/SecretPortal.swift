#if Keyring
internal import CLinux
package import CofferCore
internal import Glibc

/// The Secret portal, through which a sandboxed program gets a secret of its own from the user's keyring.
///
/// Source of the protocol: the interface `org.freedesktop.portal.Secret` of xdg-desktop-portal, version 1.
package struct SecretPortal: Sendable {
  private let environment: [String: String]

  /// The portal on the session bus that `environment` names.
  package init(environment: [String: String]) { self.environment = environment }

  /// The program's secret, and what the portal wants to get at the next call.
  package struct Answer: ~Copyable {
    /// ``minimumSize`` to ``maximumSize`` bytes, the same at each call until the user resets the keyring.
    package let secret: SecretBytes
    package let token: String?
  }

  /// The smallest secret in bytes. GNOME's and KDE's portals give 64 bytes or more.
  static let minimumSize = 32
  /// The largest secret in bytes, which a pipe holds whole.
  static let maximumSize = 4096

  private static let name = "org.freedesktop.portal.Desktop"
  private static let object = "/org/freedesktop/portal/desktop"
  private static let interface = "org.freedesktop.portal.Secret"

  /// Whether the session bus has the portal, or can start it. `false` if there is no bus. Throws `.timedOut` if the bus
  /// does not answer within `timeout`.
  package func isAvailable(timeout: Duration) throws(SecretError) -> Bool {
    do throws(ServiceFailure) {
      _ = try connect(Deadline(after: timeout))
      return true
    } catch {
      if error.isRemote || error.secretError.code == .unavailable { return false }
      throw error.secretError
    }
  }

  /// Returns the program's secret. `token` is that of the last answer. The portal may show a prompt for the password of
  /// the keyring.
  ///
  /// Throws `.unavailable` if there is no portal, `.promptDismissed` if the user refused, `.timedOut` after `timeout`,
  /// and `.io` if the answer has no usable secret.
  package func retrieve(token: String?, timeout: Duration) throws(SecretError) -> Answer {
    do throws(ServiceFailure) {
      let deadline = Deadline(after: timeout)
      let bus = try connect(deadline)
      let pipe = try SecretPipe()
      let token = try request(pipe, token: token, on: bus, deadline)
      return Answer(secret: try pipe.read(by: deadline), token: token)
    } catch .timedOut {
      throw SecretError(
        .timedOut, "The Secret portal did not answer within \(timeout).",
        advice: "Unlock the keyring of the desktop session, and try again.")
    } catch {
      throw error.secretError
    }
  }

  /// Connects to a bus that has the interface.
  private func connect(_ deadline: Deadline) throws(ServiceFailure) -> BusConnection {
    let bus = try BusConnection(address: BusAddress.find(in: environment), by: deadline)
    do throws(ServiceFailure) {
      try bus.start(Self.name, by: deadline)
    } catch .timedOut {
      throw deadline.failure
    } catch {
      if bus.isClosed { throw error }  // otherwise a portal may run that no file describes
    }
    _ = try bus.call(
      Self.name, path: Self.object, "org.freedesktop.DBus.Properties", "Get",
      [.string(Self.interface), .string("version")], by: deadline)
    return bus
  }

  private final class Outcome {
    var response: (code: UInt32, token: String?)?
    var isPortalGone = false
  }

  /// Asks for the secret to be written to `pipe`. Returns the new token, or else the old one.
  private func request(
    _ pipe: borrowing SecretPipe, token: String?, on bus: BusConnection, _ deadline: Deadline
  ) throws(ServiceFailure) -> String? {
    let context = EventContext()
    let outcome = Outcome()
    var options: [(String, Variant)] = []
    // The path of the request follows from this name. The answer may come before the path is known otherwise.
    let request = "coffer\(getpid())_\(UInt64.random(in: 0 ... .max))"
    options.append(("handle_token", .string(request)))
    if let token { options.append(("token", .string(token))) }
    let sender = bus.uniqueName.dropFirst().map { $0 == "." ? "_" : String($0) }.joined()
    func subscribe(_ path: String) -> SignalSubscription {
      SignalSubscription(
        bus, sender: Self.name, interface: "org.freedesktop.portal.Request", member: "Response", path: path
      ) { signal in
        guard let code = signal.arguments[0]?.unsigned32 else { return }
        outcome.response = (code, signal.arguments[1]?.properties?["token"]?.string)
      }
    }
    return try context.asCurrent { () throws(ServiceFailure) in
      defer { bus.deliverLast(on: context) }
      let path = "\(Self.object)/request/\(sender)/\(request)"
      var subscriptions = [subscribe(path)]
      let owner = SignalSubscription(ownersOf: Self.name, on: bus) { _ in outcome.isPortalGone = true }
      let answer = try pipe.passingWriteEnd { descriptor throws(ServiceFailure) in
        try bus.call(
          Self.name, path: Self.object, Self.interface, "RetrieveSecret",
          [.handle(0), .properties(options)], descriptor: descriptor, by: deadline)
      }
      // Portals before 0.9 choose the path themselves.
      if let other = try answer.objectPath(0), other != path { subscriptions.append(subscribe(other)) }
      return try withExtendedLifetime((subscriptions, owner)) { () throws(ServiceFailure) in
        while outcome.response == nil {
          if outcome.isPortalGone || bus.isClosed { throw .lost("the Secret portal stopped during the call") }
          if deadline.hasPassed { throw deadline.failure }
          context.iterate(timeout: .milliseconds(100))
        }
        guard outcome.response?.code == 0 else { throw Self.refused }
        return outcome.response?.token ?? token
      }
    }
  }

  private static let refused = ServiceFailure.error(
    .promptDismissed, "The Secret portal gave no secret: the prompt of the keyring was dismissed, or failed.",
    advice: "Unlock the keyring of the desktop session, and try again.")
}

/// A pipe through which the portal sends the secret.
private struct SecretPipe: ~Copyable {
  private let reader: Int32
  /// −1 when it is closed.
  private var writer: Int32

  init() throws(ServiceFailure) {
    var ends: [Int32] = [-1, -1]
    guard coffer_pipe(&ends) == 0 else { throw .failed("a pipe could not be made") }
    (reader, writer) = (ends[0], ends[1])
    _ = fcntl(reader, F_SETFL, O_NONBLOCK)
  }

  deinit {
    close(reader)
    if writer >= 0 { close(writer) }
  }

  borrowing func passingWriteEnd<R>(_ body: (Int32) throws(ServiceFailure) -> R) throws(ServiceFailure) -> R {
    try body(writer)
  }

  /// Reads what was written, to the end. Closes the pipe.
  consuming func read(by deadline: Deadline) throws(ServiceFailure) -> SecretBytes {
    // The end is not seen while this process could write.
    close(writer)
    writer = -1
    var (count, problem) = (0, ServiceFailure?.none)
    let limit = SecretPortal.maximumSize
    let file = reader
    let block = SecretBytes(count: limit + 1) { target in
      while count <= limit {
        let rest = UnsafeMutableRawBufferPointer(rebasing: target[count...])
        let result = Glibc.read(file, rest.baseAddress, rest.count)
        if result > 0 {
          count += result
        } else if result == 0 {
          return
        } else if errno == EAGAIN || errno == EINTR {
          if deadline.hasPassed {
            problem = deadline.failure
            return
          }
          var entry = pollfd(fd: file, events: Int16(POLLIN), revents: 0)
          _ = poll(&entry, 1, 50)
        } else {
          problem = .failed("the pipe could not be read")
          return
        }
      }
    }
    if let problem { throw problem }
    guard (SecretPortal.minimumSize...limit).contains(count) else {
      throw .error(
        .io,
        "The Secret portal sent \(count > limit ? "more than \(limit)" : "\(count)") bytes instead of a secret.",
        advice: "Check the log of xdg-desktop-portal, and that the session has a keyring.")
    }
    return block.withBytes { SecretBytes(copying: $0.extracting(0..<count)) }
  }
}
#endif
