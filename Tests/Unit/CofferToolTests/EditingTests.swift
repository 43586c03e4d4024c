import CofferTestSupport
import Foundation
import Testing

/// An interrupted `edit`.
@Suite struct EditingTests {
  @Test(arguments: [SIGINT, SIGTERM, SIGHUP]) func aSignalLeavesNoFileAndChangesNothing(_ signal: Int32)
    throws
  {
    let sandbox = try Sandbox()
    #expect(try sandbox.shell("secret init && printf hunter2 | secret set a").status == 0)
    let editor = sandbox.directory + "/bin/editor"
    try Data("#!/bin/sh\necho changed > \"$1\"; echo \"at $1 end\"; read line\n".utf8)
      .write(to: URL(fileURLWithPath: editor))
    chmod(editor, 0o755)
    sandbox.environment["EDITOR"] = editor
    let terminal = try Pseudoterminal("exec secret edit a", in: sandbox)
    try terminal.wait(for: " end")
    let path = try #require(
      terminal.seen.split(separator: " ").first { $0.hasPrefix("/dev/shm/") }.map(String.init))
    #expect(FileManager.default.fileExists(atPath: path))
    if signal == SIGINT { terminal.type("\u{3}") } else { kill(terminal.process, signal) }
    #expect(try terminal.end() == -signal)
    #expect(!FileManager.default.fileExists(atPath: (path as NSString).deletingLastPathComponent))
    #expect(try sandbox.shell("secret get a").outputText == "hunter2")
  }
}
