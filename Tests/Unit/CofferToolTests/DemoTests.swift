import CofferTestSupport
import Foundation
import Testing

/// The tour of `Scripts/demo`, with the built `secret`.
@Suite struct DemoTests {
  private let sandbox: Sandbox
  private let command: String

  init() throws {
    sandbox = try Sandbox()
    let root = URL(fileURLWithPath: #filePath).appending(path: "../../../../").standardized.path
    command = "\(root)/Scripts/demo --with \(sandbox.directory)/bin/secret"
  }

  private func leftFiles() throws -> [String] {
    try ["tmp", "home"].flatMap {
      try FileManager.default.contentsOfDirectory(atPath: "\(sandbox.directory)/\($0)")
    }
  }

  @Test func everyStepSucceedsAndNothingIsLeft() throws {
    let result = try sandbox.shell(command)
    #expect(result.status == 0, "\(result.errorText)")
    let lines = result.outputText.split(separator: "\n")
    #expect(lines.count { $0.hasPrefix("$ ") } == 16)
    let get = try #require(lines.firstIndex(of: "$ secret get github-token"))
    #expect(lines[get + 1] == "hunter2")
    #expect(lines.last == "The throwaway vault is removed. To create your own: secret init")
    #expect(try leftFiles().isEmpty)
  }

  @Test(arguments: [
    ("echo 0; exit 3", "demo: The step exited with status 3 instead of 1.\n"),
    ("echo 9; exit 1", "demo: The output of the step does not contain: 0\n"),
  ]) func aStepWithAnotherResultFailsTheTour(_ grep: String, _ message: String) throws {
    let result = try sandbox.shell(
      "mkdir shadow; printf '#!/bin/sh\\n\(grep)\\n' > shadow/grep; chmod +x shadow/grep; "
        + "PATH=$PWD/shadow:$PATH \(command) > /dev/null")
    #expect(result.status == 1)
    #expect(result.errorText == message)
    #expect(try leftFiles().isEmpty)
  }

  @Test(arguments: [("\u{3}", SIGINT), ("\u{1C}", SIGQUIT)])
  func anInterruptedTourLeavesNothing(_ key: String, _ signal: Int32) throws {
    let terminal = try Pseudoterminal("exec \(command)", in: sandbox)
    try terminal.wait(for: "$ secret get github-token")
    terminal.type(key)
    #expect(try terminal.end() == 128 + signal)
    #expect(try leftFiles().isEmpty)
  }
}
