#if Keyring
import CofferTestSupport
import Foundation
import Testing

/// Stands for the program that shows gnome-keyring's prompts, and counts them. It never answers.
struct KeyringPrompter {
  private let process: ChildProcess
  private let log: String

  init(_ keyring: PrivateKeyring) async throws {
    log = keyring.path("prompts.log")
    process = try keyring.start("prompter", [log])
    try await eventually("the program for prompts did not start") {
      try keyring.hasOwner("org.gnome.keyring.SystemPrompter")
    }
  }

  /// The number of prompts so far.
  func count() throws -> Int {
    try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n").count
  }

  func kill() { process.kill() }
}
#endif
