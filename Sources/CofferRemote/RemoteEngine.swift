internal import CofferLibc

/// An engine with one object, as a helper sees it.
public protocol RemoteEngine {
  /// Answers a request. Throws what the request failed with. A publish that may have been made must answer `.unknown`
  /// instead.
  mutating func answer(_ request: RemoteRequest) throws(RemoteFailure) -> RemoteAnswer
  /// The engine's time in microseconds since 1970, as it was in its last answer, or 0.
  var time: Int { get }
}

/// Answers the requests on standard input until it ends: all that a program `coffer-remote-NAME` does. If `make`
/// throws, every answer is that failure. Returns the exit status: 0, or 76 if a message is malformed (EX_PROTOCOL of
/// sysexits.h).
public func serve<E: RemoteEngine>(_ make: () throws(RemoteFailure) -> E) -> Int32 {
  // The program that started this one may close its end at any time.
  signal(SIGPIPE, SIG_IGN)
  var connection = RemoteConnection(input: STDIN_FILENO, output: STDOUT_FILENO)
  var engine = Result { () throws(RemoteFailure) in try make() }
  do throws(RemoteConnection.Failure) {
    while let message = try connection.receive() {
      guard let request = RemoteRequest(message) else { return 76 }
      let answer: RemoteAnswer
      var time = 0
      do throws(RemoteFailure) {
        var serving = try engine.get()
        defer { (engine, time) = (.success(serving), serving.time) }
        answer = try serving.answer(request)
      } catch { answer = .failed(error) }
      try connection.send(answer.message(time: time))
    }
    return 0
  } catch {
    return error == .ended ? 0 : 76
  }
}

/// Whether `host` is `localhost` or an address of the loopback interface, where an engine may be used without TLS. A
/// name that only begins like one is not.
public func isLoopback(_ host: String) -> Bool {
  let isAddress = host.utf8.allSatisfy { (0x30...0x39).contains($0) || $0 == UInt8(ascii: ".") }
  return ["localhost", "::1", "[::1]"].contains(host) || isAddress && host.hasPrefix("127.")
}
