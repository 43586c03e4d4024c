#if Keyring
internal import CLibsecret

/// The opening of a session: libsecret makes a key pair, and asks the service for a session.
///
/// libsecret asks on a connection of its own, whose other end this object has. ``path(by:_:)`` passes the question to
/// the service, checks the type of the answer, which libsecret does not do, and passes the answer back. So libsecret
/// makes the key pair while this process connects to the bus, and computes the key while the service already uses the
/// session. No other message of libsecret reaches the bus.
final class SessionNegotiation: Sendable {
  /// The longest public key in bytes: 1024 bits, the group of the protocol's only encryption, and the zero byte that
  /// KWallet puts before a number whose first bit is set.
  private static let maximumKeyLength = 129

  private let end: SocketEnd
  private let session: CancellableCall<SecretSession>
  /// The path of the session, once the service has returned it. Accessed by one thread at a time.
  private nonisolated(unsafe) var path: String?

  /// Begins on a thread of its own.
  init() {
    let (end, libsecretsEnd) = SocketEnd.pair()
    self.end = end
    session = CancellableCall { cancellable throws(ServiceFailure) in
      try SecretSession(at: libsecretsEnd, end, cancellable)
    }
  }

  /// Passes each `OpenSession` of libsecret to `call`, and the answer back to libsecret. Returns the path of the
  /// session, in later calls at once. Only one thread at a time may call this.
  ///
  /// Throws what `call` throws. If the service does not support encryption, libsecret first asks again for a session
  /// without it.
  func path(
    by deadline: Deadline, _ call: ([Variant]) throws(ServiceFailure) -> Variant
  ) throws(ServiceFailure) -> String {
    if let path { return path }
    while let question = try end.receive(by: deadline) {
      let arguments = question.arguments
      do throws(ServiceFailure) {
        let answer = try call(arguments)
        let isEncrypted = arguments.first?.string != "plain"
        guard let path = Self.sessionPath(answer, isEncrypted: isEncrypted) else { throw .malformed }
        session.letEnd()
        try end.send(question.answer(answer))
        self.path = path
        return path
      } catch .remote(let name, _) where name == "org.freedesktop.DBus.Error.NotSupported" {
        try end.send(question.error(name))
      }
    }
    return try session(by: deadline).path  // throws the reason why libsecret does not ask
  }

  /// Waits until libsecret has computed the key. Call this after ``path(by:_:)``.
  func session(by deadline: Deadline) throws(ServiceFailure) -> SecretSession {
    try session.result(by: deadline)
  }

  /// The session's path, if `answer` is an answer to `OpenSession`: the service's public key or nothing, and the path.
  static func sessionPath(_ answer: Variant, isEncrypted: Bool) -> String? {
    guard answer.signature == "(vo)", let output = answer[0]?.unboxed, let path = answer[1]?.path,
      path != "/"
    else { return nil }
    let isOutput =
      isEncrypted
      ? output.signature == "ay" && (1...maximumKeyLength).contains(output.count) : output.signature == "s"
    return isOutput ? path : nil
  }
}
#endif
