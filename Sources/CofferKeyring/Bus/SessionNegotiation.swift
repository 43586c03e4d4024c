#if Keyring
internal import CLibsecret

/// The beginning of a session: libsecret makes a key pair, and asks for a session with it.
///
/// libsecret asks on a connection of its own, whose other end is here. ``complete(within:_:answered:)`` passes the question on to the
/// service, and the answer back once its type is checked, which libsecret does not do. So the key pair is made while this
/// process connects to the bus, and no other message of libsecret reaches the bus.
final class SessionNegotiation: Sendable {
  /// The longest public key in bytes: 1024 bits, the group of the protocol's only encryption, and the zero byte that
  /// KWallet puts before a number whose first bit is set.
  private static let maximumKeyLength = 129

  private let end: SocketEnd
  private let session: CancellableCall<SecretSession>

  /// Begins on a thread of its own.
  init() {
    let (end, libsecretsEnd) = SocketEnd.pair()
    self.end = end
    session = CancellableCall { cancellable throws(ServiceFailure) in
      try SecretSession(at: libsecretsEnd, end, cancellable)
    }
  }

  /// Passes each `OpenSession` of libsecret to `call`, and the answer back to libsecret. Then calls `answered` with the
  /// path of the session, while libsecret still computes the key. Returns when there is a session. To be called once.
  ///
  /// Throws what `call` throws, except that libsecret asks again, for a session without encryption, if the service does not
  /// support the first one.
  func complete(
    within timeout: Duration, _ call: ([Variant]) throws(ServiceFailure) -> Variant,
    answered: (String) -> Void = { _ in }
  ) throws(ServiceFailure) -> SecretSession {
    let deadline = Deadline(after: timeout)
    do throws(ServiceFailure) {
      while let question = try end.receive(within: deadline.remaining) {
        let arguments = g_dbus_message_get_body(question.raw).map { Variant(sinking: $0).children } ?? []
        do throws(ServiceFailure) {
          let answer = try call(arguments)
          let isEncrypted = arguments.first?.string != "plain"
          guard let path = Self.sessionPath(answer, isEncrypted: isEncrypted) else { throw .malformed }
          try end.send(question.answer(answer))
          answered(path)
          break
        } catch .remote(let name, _) where name == "org.freedesktop.DBus.Error.NotSupported" {
          try end.send(question.error(name))
        }
      }
      return try session.result(within: deadline.remaining)
    } catch .timedOut {
      throw .timedOut(timeout)
    }
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
