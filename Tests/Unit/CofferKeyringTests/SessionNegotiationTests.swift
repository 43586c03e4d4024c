#if Keyring
import CofferCore
import CofferTestSupport
import Foundation
import Testing

@testable import CofferKeyring

/// What libsecret asks for is passed to the service, and the answer to libsecret. No bus is needed.
@Suite(.timeLimit(.minutes(30))) struct SessionNegotiationTests {
  private static let notSupported = ServiceFailure.remote("org.freedesktop.DBus.Error.NotSupported")
  private static var deadline: Deadline { Deadline(after: .seconds(60)) }

  private final class Service {
    var questions: [(algorithm: String?, output: String?)] = []
    let answers: [Result<String, ServiceFailure>]

    init(_ answers: Result<String, ServiceFailure>...) { self.answers = answers }

    func answer(_ question: [Variant]) throws(ServiceFailure) -> Variant {
      questions.append((question.first?.string, question.last?.unboxed?.signature))
      let text = try answers[min(questions.count, answers.count) - 1].get()
      do { return try Variant.parse(text) } catch { throw .failed("\(text) cannot be read") }
    }
  }

  private static let encrypted = Result<String, ServiceFailure>.success(
    "(<\(Variant.text(ofBytes: 128))>, @o '/session/1')")
  private static let plain = Result<String, ServiceFailure>.success("(<''>, @o '/session/2')")

  private func failure(_ service: Service) -> ServiceFailure? {
    do throws(ServiceFailure) {
      let path = try SessionNegotiation().path(by: Self.deadline, service.answer)
      Issue.record("\(path) is no path of a session")
    } catch { return error }
    return nil
  }

  @Test func theServiceIsAskedForAnEncryptedSessionOnce() throws {
    let service = Service(Self.encrypted)
    let negotiation = SessionNegotiation()
    #expect(try negotiation.path(by: Self.deadline, service.answer) == "/session/1")
    let session = try negotiation.session(by: Self.deadline)
    #expect(session.path == "/session/1")
    #expect(try negotiation.path(by: Self.deadline, service.answer) == "/session/1")
    #expect(try negotiation.session(by: Self.deadline) === session)
    #expect(service.questions.count == 1)
    #expect(service.questions.first?.algorithm == "dh-ietf1024-sha256-aes128-cbc-pkcs7")
    #expect(service.questions.first?.output == "ay")
    // A value is encrypted, and opened again.
    let sealed = session.seal(SecretBytes("a value"))
    #expect(sealed.isSecret && sealed[1]?.count == 16 && sealed[2]?.count == 16)
    #expect(try session.open(sealed).string() == "a value")
  }

  @Test func aServiceWithoutEncryptionIsAskedForAPlainSession() throws {
    let service = Service(.failure(Self.notSupported), Self.plain)
    let negotiation = SessionNegotiation()
    #expect(try negotiation.path(by: Self.deadline, service.answer) == "/session/2")
    let session = try negotiation.session(by: Self.deadline)
    #expect(session.path == "/session/2")
    #expect(service.questions.map(\.algorithm) == ["dh-ietf1024-sha256-aes128-cbc-pkcs7", "plain"])
    let sealed = session.seal(SecretBytes("a value"))
    #expect(sealed.isSecret && sealed[1]?.count == 0 && sealed[2]?.count == 7)
  }

  @Test func aServiceThatSupportsNoSessionIsARemoteError() {
    let service = Service(.failure(Self.notSupported))
    let failure = failure(service)
    #expect(failure?.isRemote == true && service.questions.count == 2, "\(String(describing: failure))")
  }

  /// libsecret does not get an answer that it would not check, in either kind of session.
  @Test func anAnswerOfAnotherTypeIsMalformed() {
    for answer in ["(<''>, @o '/s')", "(<@ay []>, @o '/s')", "()", "('a', 'b')"] {
      let service = Service(.success(answer))
      guard case .malformed = failure(service) else { return #expect(Bool(false), "\(answer)") }
      #expect(service.questions.count == 1)
    }
    let service = Service(.failure(Self.notSupported), Self.encrypted)
    guard case .malformed = failure(service) else { return #expect(Bool(false), "a key without encryption") }
  }

  @Test func theFailureOfTheCallIsThrownAsItIs() {
    for thrown in [
      ServiceFailure.remote("org.freedesktop.DBus.Error.AccessDenied", reason: "no"),
      .remote("example.Error.Own", reason: "because"),
      .lost("it ended"), .timedOut(.seconds(7)),
    ] {
      let service = Service(.failure(thrown))
      let failure = failure(service)
      #expect(failure?.secretError.code == thrown.secretError.code && service.questions.count == 1)
      if case .remote = thrown { #expect(failure?.secretError.reason == thrown.secretError.reason) }
    }
  }

  /// A process of its own, because GDBus has one thread for all connections.
  @Test func aProgramThatIsStartedAtTheSameTimeGetsNoneOfItsDescriptors() async {
    await #expect(processExitsWith: .success) {
      let (open, kept) = try withoutDescriptors {
        let negotiation = SessionNegotiation()
        var open: [Int32] = []
        var kept: [Int32] = []
        _ = try negotiation.path(by: SessionNegotiationTests.deadline) { _ throws(ServiceFailure) in
          open = (0..<1000).filter { fcntl($0, F_GETFD) >= 0 }
          kept = open.filter { fcntl($0, F_GETFD) & FD_CLOEXEC == 0 }
          do { return try Variant.parse(SessionNegotiationTests.encrypted.get()) } catch { throw .malformed }
        }
        return (open, kept)
      }
      #expect(!open.isEmpty && kept.isEmpty, "\(kept)")
    }
  }

  /// A negotiation may be used long after it began, or never.
  @Test func nothingIsLeftOfManyNegotiations() async {
    await #expect(processExitsWith: .success) {
      func openFiles() throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
      }
      func use(_ count: Int) throws {
        for number in 0..<count {
          let negotiation = SessionNegotiation()
          let deadline = SessionNegotiationTests.deadline
          switch number % 10 {
          case 0: break
          case 1:
            do throws(ServiceFailure) {
              _ = try negotiation.path(by: deadline) { _ throws(ServiceFailure) in throw .malformed }
            } catch {}
          default:
            _ = try negotiation.path(by: deadline, Service(SessionNegotiationTests.encrypted).answer)
            if number % 10 > 2 { _ = try negotiation.session(by: deadline) }
          }
        }
      }
      try use(20)
      try await Task.sleep(for: .milliseconds(10))
      // GDBus opens a few files for good, perhaps later.
      let limit = try openFiles() + 20
      try use(1000)
      for _ in 0..<6000 where try openFiles() > limit { try await Task.sleep(for: .milliseconds(10)) }
      #expect(try openFiles() <= limit)
    }
  }
}
#endif
