#if Keyring
package import CofferCore
internal import CofferSystem
internal import CofferLibc

/// The Secret portal, through which a sandboxed program gets a secret of its own from the user's keyring.
///
/// Source of the protocol: the interface `org.freedesktop.portal.Secret` of xdg-desktop-portal, version 1.
package struct SecretPortal: Sendable {
  private let environment: [String: String]

  /// The portal on the session bus that `environment` names.
  package init(environment: [String: String]) { self.environment = environment }

  /// The program's secret, and the token that the portal expects at the next call.
  package struct Answer: ~Copyable {
    /// ``minimumSize`` to ``maximumSize`` bytes, the same at each call until the user resets the keyring.
    package let secret: SecretBytes
    package let token: String?
  }

  /// The smallest secret in bytes. GNOME's and KDE's portals give 64 bytes or more.
  static let minimumSize = 32
  /// The largest secret in bytes. A pipe can hold all of it.
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
      let (pipe, newToken) = try request(token, on: bus, deadline)
      return Answer(secret: try Self.read(pipe, by: deadline), token: newToken ?? token)
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
    let bus = try BusConnection.to(BusAddress.find(in: environment), by: deadline)
    do throws(ServiceFailure) {
      try bus.start(Self.name, by: deadline)
    } catch .timedOut {
      throw deadline.failure
    } catch  where !bus.isClosed {}  // a portal without a service file may be running
    _ = try bus.call(
      Self.name, path: Self.object, "org.freedesktop.DBus.Properties", "Get",
      [.string(Self.interface), .string("version")], by: deadline)
    return bus
  }

  /// Asks for the secret. Returns the reading end of the pipe with the secret, and the new token if there is one. The
  /// other end is closed in this process, so that the reader sees the end of the secret.
  private func request(
    _ token: String?, on bus: BusConnection, _ deadline: Deadline
  ) throws(ServiceFailure) -> (pipe: Descriptor, newToken: String?) {
    let pipe: (reading: Descriptor, writing: Descriptor)
    do throws(FileSystemError) { pipe = try Descriptor.pipe() } catch {
      throw .failed("a pipe could not be made")
    }
    let context = EventContext()
    var response: (code: UInt32, token: String?)?
    var isPortalGone = false
    // The request's path is derived from this name, so that we can subscribe before we call: the answer may arrive
    // first.
    let request = "coffer\(getpid())_\(UInt64.random(in: 0 ... .max))"
    let options = [("handle_token", request)] + (token.map { [("token", $0)] } ?? [])
    let arguments = [Variant.handle(0), .properties(options.map { ($0.0, .string($0.1)) })]
    let sender = bus.uniqueName.dropFirst().map { $0 == "." ? "_" : String($0) }.joined()
    func subscribe(_ path: String) -> SignalSubscription {
      SignalSubscription(
        bus, sender: Self.name, interface: "org.freedesktop.portal.Request", member: "Response", path: path
      ) { _, arguments in
        guard let code = arguments[0]?.unsigned32 else { return }
        response = (code, arguments[1]?.properties?["token"]?.string)
      }
    }
    return try context.asCurrent { () throws(ServiceFailure) in
      defer { bus.deliverLast(on: context) }
      let path = "\(Self.object)/request/\(sender)/\(request)"
      var subscriptions = [subscribe(path)]
      let owner = SignalSubscription(ownersOf: Self.name, on: bus) { _, _ in isPortalGone = true }
      let answer = try withExtendedLifetime(pipe) { () throws(ServiceFailure) in
        try bus.call(
          Self.name, path: Self.object, Self.interface, "RetrieveSecret", arguments,
          descriptor: pipe.writing.number, by: deadline)
      }
      // Portals before 0.9 choose the path themselves.
      if let other = try answer.objectPath(0), other != path { subscriptions.append(subscribe(other)) }
      return try withExtendedLifetime((subscriptions, owner)) { () throws(ServiceFailure) in
        while response == nil {
          if isPortalGone || bus.isClosed { throw .lost("the Secret portal stopped during the call") }
          if deadline.hasPassed { throw deadline.failure }
          context.iterate(timeout: .milliseconds(100))
        }
        guard response?.code == 0 else {
          throw .error(
            .promptDismissed, "The Secret portal gave no secret: the prompt of the keyring was dismissed, or failed.",
            advice: "Unlock the keyring of the desktop session, and try again.")
        }
        return (pipe.reading, response?.token)
      }
    }
  }

  private static func read(_ pipe: Descriptor, by deadline: Deadline) throws(ServiceFailure) -> SecretBytes {
    var size = "more than \(maximumSize)"
    do throws(SecretError) {
      if let secret = try readToEnd(
        of: pipe.number, named: "the pipe of the Secret portal", limit: maximumSize, deadline: deadline.end)
      {
        if secret.count >= minimumSize { return secret }
        size = "\(secret.count)"
      }
    } catch {
      throw error.code == .timedOut ? deadline.failure : .failed("the pipe could not be read")
    }
    throw .error(
      .io, "The Secret portal sent \(size) bytes instead of a secret.",
      advice: "Check the log of xdg-desktop-portal, and that the session has a keyring.")
  }
}
#endif
