import CofferTestSupport
import Foundation
import Testing

/// `export` on a terminal.
@Suite struct ExportTests {
  @Test func exportToATerminalRequiresForce() throws {
    let sandbox = try Sandbox()
    #expect(try sandbox.shell("secret init && printf canary | secret set a").status == 0)
    let refused = try Pseudoterminal("secret export", in: sandbox)
    try refused.wait(for: "add --force")
    #expect(try refused.end() == 64)
    #expect(!refused.seen.contains("canary"))
    let forced = try Pseudoterminal("secret export --force", in: sandbox)
    try forced.wait(for: "canary")
    #expect(try forced.end() == 0)
  }
}
