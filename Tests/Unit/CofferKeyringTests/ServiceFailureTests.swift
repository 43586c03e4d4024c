#if Keyring
import CofferCore
import Testing

@testable import CofferKeyring

@Suite struct ServiceFailureTests {
  @Test(arguments: [
    (ServiceFailure.lost("gone"), SecretError.Code.unavailable), (.failed("no socket"), .unavailable),
    (.timedOut(.seconds(5)), .timedOut), (.malformed, .io), (.locked, .locked),
    (.remote("org.freedesktop.Secret.Error.IsLocked"), .locked),
    (.remote("org.freedesktop.DBus.Error.AccessDenied"), .denied),
    (.remote("org.freedesktop.DBus.Error.LimitsExceeded"), .tooLarge),
    (.remote("org.freedesktop.DBus.Error.Failed"), .io),
  ])
  func eachFailureHasACodeAndAdvice(_ failure: ServiceFailure, _ code: SecretError.Code) {
    #expect(failure.secretError.code == code)
    #expect(failure.secretError.advice != nil)
  }

  @Test func theReasonOfTheServiceIsInTheMessage() {
    let failure = ServiceFailure.remote("org.example.Strange", reason: "The disk\nis \u{1B}full")
    #expect(
      failure.secretError.reason
        == "The keyring returned the error org.example.Strange: “The disk is  full”.")
    #expect(failure.withoutReason.secretError.reason == "The keyring returned the error org.example.Strange.")
    let long = ServiceFailure.remote("org.example.Strange", reason: String(repeating: "x", count: 10_000))
    #expect(long.secretError.reason.count < 300)
  }

  @Test func theMessageOfATimeoutNamesIt() {
    #expect(
      ServiceFailure.timedOut(.seconds(5)).secretError.reason
        == "The keyring did not answer within 5.0 seconds.")
    #expect(
      ServiceFailure.timedOut(.nanoseconds(4_993_640_322), answers: 812, of: 3000).secretError.reason
        == "The keyring gave 812 of 3000 answers within 5.0 seconds.")
  }

  @Test func onlyErrorsAboutMissingObjectsAllowAnotherSearch() {
    for name in ["Secret.Error.NoSuchObject", "DBus.Error.UnknownObject", "DBus.Error.UnknownMethod"] {
      #expect(ServiceFailure.remote("org.freedesktop." + name).isNoSuchObject)
    }
    #expect(!ServiceFailure.remote("org.freedesktop.Secret.Error.IsLocked").isNoSuchObject)
    #expect(!ServiceFailure.malformed.isNoSuchObject)
    #expect(ServiceFailure.remote("org.freedesktop.Secret.Error.IsLocked").isLocked)
    #expect(!ServiceFailure.locked.isLocked, "an error for the caller is never retried")
  }
}
#endif
