@testable import CofferConfiguration
@testable import Coffer
import CofferTestSupport
import CofferCore
import CofferVault
import Foundation
import Testing

@Suite(.timeLimit(.minutes(30))) struct CredentialSourceTests {
  let home: TemporaryDirectory
  let vault: VaultDescription

  init() throws {
    home = try TemporaryDirectory()
    vault = VaultDescription(
      path: "/x.vault",
      id: String(repeating: "0123456789abcdef", count: 2)
    )
  }

  private func configuration(_ more: [String: String], timeout: Duration = .seconds(60))
    -> BackendConfiguration
  {
    var configuration = BackendConfiguration(environment: home.environment(more))
    configuration.timeout = timeout
    return configuration
  }

  /// The credential of the first source as text, or `nil`.
  private func first(_ configuration: BackendConfiguration) throws(SecretError) -> String? {
    guard let credential = try configuration.credentials()[0].credential(for: vault) else { return nil }
    if credential.kind == .passphrase { return "passphrase:" + (try credential.secret.string()) }
    return "key: \(credential.secret.count) bytes"
  }

  private func failure(_ configuration: BackendConfiguration) -> SecretError? {
    thrown { () throws(SecretError) in _ = try first(configuration) }
  }

  @Test func theOrderIsTheDocumentedOne() throws {
    let extra = VaultCredentialSource("extra") { _ in nil }
    let everything = configuration([
      "COFFER_KEY": "k", "COFFER_KEY_FILE": "/k", "COFFER_KEY_COMMAND": "true", "COFFER_PASSPHRASE_FD": "3",
      "COFFER_PASSPHRASE_FILE": "/p", "COFFER_PASSPHRASE_COMMAND": "true",
      "CREDENTIALS_DIRECTORY": "/run/credentials",
    ])
    #expect(
      everything.credentials(additional: [extra]).map(\.name) == [
        "COFFER_KEY_FILE", "COFFER_KEY", "COFFER_KEY_COMMAND", "COFFER_PASSPHRASE_FD",
        "COFFER_PASSPHRASE_FILE",
        "COFFER_PASSPHRASE_COMMAND", "the systemd credential coffer.key", "the recorded key file",
        "the kernel keyring", "extra",
      ]
    )
    #expect(
      configuration([:]).credentials().map(\.name) == ["the recorded key file", "the kernel keyring"])
  }

  @Test func withoutARecordThereIsNoCredential() throws { #expect(try first(configuration([:])) == nil) }

  @Test func aSystemdCredentialMayBeMissing() throws {
    #expect(try first(configuration(["CREDENTIALS_DIRECTORY": home.path])) == nil)
    try home.write("", to: "coffer.key")
    #expect(failure(configuration(["CREDENTIALS_DIRECTORY": home.path]))?.code == .configuration)
  }

  // MARK: Files

  @Test(arguments: [
    ("secret", "secret"), ("secret\n", "secret"), ("secret\n\n", "secret\n"), ("secret\r\n", "secret\r"),
    (" s p a c e s \n", " s p a c e s "), ("a\nb\n", "a\nb"), ("\0\n", "\0"),
  ])
  func oneTrailingNewlineIsDropped(text: String, passphrase: String) throws {
    let file = try home.write(text, to: "passphrase")
    #expect(try first(configuration(["COFFER_PASSPHRASE_FILE": file])) == "passphrase:" + passphrase)
  }

  @Test(arguments: ["COFFER_KEY_FILE", "COFFER_PASSPHRASE_FILE"])
  func aMissingFileIsAnErrorThatNamesTheVariable(name: String) throws {
    for path in [home.path + "/missing", "/dev/null/missing", home.path, "/dev/zero", "/dev/null", ""] {
      let error = try #require(failure(configuration([name: path])), "\(path)")
      #expect(error.code == .configuration)
      #expect(error.reason.contains(name))
    }
  }

  @Test func anEmptyOrLargeFileIsAnError() throws {
    for text in ["", "\n"] {
      let file = try home.write(text, to: "passphrase")
      #expect(failure(configuration(["COFFER_PASSPHRASE_FILE": file]))?.code == .configuration)
    }
    let most = String(repeating: "x", count: 65_536)
    let file = try home.write(most, to: "passphrase")
    #expect(try first(configuration(["COFFER_PASSPHRASE_FILE": file])) == "passphrase:" + most)
    try home.write(most + "x", to: "passphrase")
    #expect(failure(configuration(["COFFER_PASSPHRASE_FILE": file]))?.code == .configuration)
  }

  @Test(arguments: ["COFFER_KEY_FILE", "COFFER_PASSPHRASE_FILE"])
  func aFileThatIsOpenToOthersIsRefusedForRootAsWell(name: String) throws {
    let file = try home.write("secret", to: "file", mode: 0o644)
    let error = try #require(failure(configuration([name: file])))
    #expect(error.code == .denied)
    #expect(error.reason.contains(name) && error.reason.contains(file))
    #expect(error.description.contains("chmod 600"))
  }

  // MARK: Descriptors

  private func pipe(_ text: String, close isClosed: Bool = true) -> (reading: Int32, writing: Int32) {
    var ends: [Int32] = [-1, -1]
    #expect(Foundation.pipe(&ends) == 0)
    #expect(write(ends[1], text, text.utf8.count) == text.utf8.count)
    if isClosed { close(ends[1]) }
    return (ends[0], ends[1])
  }

  @Test func aDescriptorIsReadOnceAndKept() throws {
    let end = pipe("secret\n").reading
    defer { close(end) }
    let configuration = configuration(["COFFER_PASSPHRASE_FD": "\(end)"])
    let copy = configuration
    #expect(try first(configuration) == "passphrase:secret")
    #expect(try first(copy) == "passphrase:secret")
    #expect(try first(configuration) == "passphrase:secret")
    #expect(fcntl(end, F_GETFD) & FD_CLOEXEC != 0, "other programs inherit the descriptor")
  }

  /// As the process substitution of a shell gives it.
  @Test(arguments: ["/dev/fd/", "/proc/self/fd/"]) func aPathOfADescriptorIsReadOnceAndKept(place: String)
    throws
  {
    let end = pipe("secret\n").reading
    defer { close(end) }
    let configuration = configuration(["COFFER_PASSPHRASE_FILE": place + "\(end)"])
    for _ in 1...2 { #expect(try first(configuration) == "passphrase:secret") }
    #expect(fcntl(end, F_GETFD) & FD_CLOEXEC != 0, "other programs inherit the descriptor")
  }

  @Test(arguments: ["", "x", "-1", "99999", "3 ", "99999999999"])
  func aClosedDescriptorIsAnError(text: String) throws {
    let error = try #require(failure(configuration(["COFFER_PASSPHRASE_FD": text])))
    #expect(error.code == .configuration)
    #expect(error.reason.contains("COFFER_PASSPHRASE_FD"))
  }

  @Test func aTimeoutOfTheDescriptorIsKept() throws {
    let (reading, writing) = pipe("half", close: false)
    defer { close(reading) }
    let configuration = configuration(["COFFER_PASSPHRASE_FD": "\(reading)"], timeout: .milliseconds(50))
    #expect(failure(configuration)?.code == .timedOut)
    #expect(write(writing, " the rest", 9) == 9)
    close(writing)
    #expect(failure(configuration)?.code == .timedOut, "the rest was taken as the passphrase")
  }

  // MARK: Commands

  private func command(_ text: String, _ more: [String: String] = [:], timeout: Duration = .seconds(60))
    -> BackendConfiguration
  {
    configuration(more.merging(["COFFER_PASSPHRASE_COMMAND": text]) { $1 }, timeout: timeout)
  }

  @Test func aCommandsOutputIsThePassphrase() throws {
    #expect(try first(command("echo secret")) == "passphrase:secret")
    #expect(try first(command("printf 'a\\nb\\n\\n'; echo ignored >&2")) == "passphrase:a\nb\n")
    #expect(try first(command("echo \"$HOME\" | tr a-z A-Z")) == "passphrase:" + home.path.uppercased())
  }

  @Test func aCommandDoesNotGetTheKeys() throws {
    // The other sources would fail, so only the command is used.
    let configuration = command(
      "env",
      ["COFFER_KEY": "canary", "COFFER_KEY_FILE": "canary", "COFFER_PASSPHRASE_FILE": "canary", "OTHER": "1"]
    )
    let source = try #require(
      configuration.credentials().first { $0.name == "COFFER_PASSPHRASE_COMMAND" }
    )
    guard let credential = try source.credential(for: vault) else {
      Issue.record("The command gave no passphrase.")
      return
    }
    #expect(credential.kind == .passphrase)
    let environment = try credential.secret.string()
    #expect(environment.contains("OTHER=1"))
    #expect(!environment.contains("COFFER_") && !environment.contains("canary"))
  }

  @Test func aCommandsInputIsEmpty() throws {
    #expect(try first(command("cat; echo end")) == "passphrase:end")
  }

  @Test(arguments: [
    "exit 3", "echo secret; exit 1", "kill -9 $$", "false", "", "/nonexistent/command", "true", "echo",
  ])
  func aFailingCommandIsAnError(text: String) throws {
    let error = try #require(failure(command(text)))
    #expect(error.code == .configuration)
    #expect(error.reason.contains("COFFER_PASSPHRASE_COMMAND"))
    #expect(!error.description.contains("secret"))
  }

  @Test func aCommandsOutputIsBounded() throws {
    #expect(failure(command("yes"))?.code == .configuration)
  }

  @Test(arguments: [
    "sleep 600", "sleep 600 & echo early", "exec >&-; sleep 600", "trap '' TERM INT; sleep 600",
  ])
  func aTimeoutKillsTheCommandAndWhatItStarted(text: String) async throws {
    let mark = home.path + "/pid"
    let started = ContinuousClock.now
    let error = failure(command("echo $$ > \(mark); \(text)", timeout: .seconds(3)))
    #expect(error?.code == .timedOut)
    #expect(ContinuousClock.now - started < .seconds(300))
    let shell = try #require(pid_t(try home.text(of: "pid").trimmingCharacters(in: .whitespacesAndNewlines)))
    try await eventually("a process of the command's group was left") {
      try processes(ofGroup: shell).isEmpty
    }
  }
}
