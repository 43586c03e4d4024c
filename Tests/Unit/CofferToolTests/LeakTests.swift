import CofferTestSupport
import Foundation
import Testing

/// A value must be where it was sent and nowhere else: not in an argument, a variable, a message, a file.
@Suite struct LeakTests {
  private static let canary = "canary-7f3a9c51e8d24b06"

  /// All that `/proc` tells of the arguments and variables of every process that can be seen, but this one.
  private func processes(_ what: String) throws -> [String: Data] {
    var found: [String: Data] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: "/proc") where Int32(name) != nil {
      // A process may end at any moment.
      found[name] = FileManager.default.contents(atPath: "/proc/\(name)/\(what)")
    }
    found["\(getpid())"] = nil
    return found
  }

  private func holders(of what: String) throws -> [String] {
    try processes(what).filter { $0.value.range(of: Data(Self.canary.utf8)) != nil }.map(\.key)
  }

  @Test func noProcessShowsTheValueWhileItIsStoredAndRead() throws {
    let sandbox = try Sandbox()
    #expect(try sandbox.shell("secret init").status == 0)

    // `set` waits for the rest of its input, with the value in its memory.
    let terminal = try Pseudoterminal("secret set a", in: sandbox)
    try terminal.wait(for: "Value of a: ")
    terminal.type(Self.canary + "\n")
    try terminal.wait(for: "The same again: ")
    #expect(try holders(of: "cmdline").isEmpty)
    #expect(try holders(of: "environ").isEmpty)
    terminal.type(Self.canary + "\n")
    #expect(try terminal.end() == 0)

    // `get` waits for its reader, with the value on its way.
    let reading = try Pseudoterminal(
      "head -c 1000000 /dev/zero | secret set big; mkfifo f; secret get a > value; secret get big > f & "
        + "exec 3<f; echo ready; read line; cat <&3 >/dev/null", in: sandbox)
    try reading.wait(for: "ready")
    #expect(try holders(of: "cmdline").isEmpty)
    #expect(try holders(of: "environ").isEmpty)
    reading.type("\n")
    #expect(try reading.end() == 0)
    #expect(try sandbox.shell("cat value").outputText == Self.canary)
    #expect(try sandbox.shell("rm value; grep -r -l -F \(Self.canary) .. ").outputText == "")
  }

  @Test func runGivesItToTheCommandAlone() throws {
    let sandbox = try Sandbox()
    #expect(try sandbox.shell("secret init && secret set a", input: Data(Self.canary.utf8)).status == 0)
    let terminal = try Pseudoterminal(
      "secret run --set A=a -- sh -c 'sh -c \"echo ready; read line\"; true'; true", in: sandbox)
    try terminal.wait(for: "ready")
    #expect(try holders(of: "cmdline").isEmpty)
    // The command and the command's own child, and not the shell that ran the tool: the search does find it.
    #expect(try holders(of: "environ").count == 2)
    terminal.type("\n")
    #expect(try terminal.end() == 0)
  }

  @Test func theKeyInTheEnvironmentIsNotPassedOn() throws {
    let sandbox = try Sandbox()
    #expect(try sandbox.shell("secret init && printf x | secret set a").status == 0)
    sandbox.environment["COFFER_KEY"] = try sandbox.shell("cat ../home/config/coffer/key").outputText
      .trimmingCharacters(in: .newlines)
    let result = try sandbox.shell("secret run --set A=a -- sh -c 'cat /proc/self/environ'")
    #expect(result.status == 0)
    #expect(result.output.range(of: Data("A=x".utf8)) != nil)
    #expect(result.output.range(of: Data("coffer-key-v1".utf8)) == nil)
  }

  @Test func nothingMayReadTheMemoryOrDumpIt() throws {
    let sandbox = try Sandbox()
    // For a process of root's nothing can be seen, so it is run as somebody else.
    let user = geteuid() == 0 ? "setpriv --reuid 54321 --regid 54321 --clear-groups" : ""
    let prepared = try sandbox.shell(
      "cp $(readlink -f ../bin/secret) . && chown -R 54321 .. 2>/dev/null; \(user) ./secret init")
    #expect(prepared.status == 0, "\(prepared.errorText)")
    let terminal = try Pseudoterminal("ulimit -c unlimited; exec \(user) ./secret set a", in: sandbox)
    try terminal.wait(for: "Value of a: ")
    let limits = try String(contentsOfFile: "/proc/\(terminal.process)/limits", encoding: .utf8)
    let core = try #require(limits.split(separator: "\n").first { $0.hasPrefix("Max core file size") })
    #expect(core.split(separator: " ")[4] == "0")
    // What `/proc` has of a process that may not be dumped is root's, whoever runs it.
    let memory = "/proc/\(terminal.process)/mem"
    #expect(try FileManager.default.attributesOfItem(atPath: memory)[.ownerAccountID] as? Int == 0)
    terminal.type("\u{3}")
    #expect(try terminal.end() == -SIGINT)
  }
}
