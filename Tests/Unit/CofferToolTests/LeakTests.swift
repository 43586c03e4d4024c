import CofferTestSupport
import Foundation
import Testing

/// A value appears only where it was sent, and in no other argument, variable, message or file.
@Suite struct LeakTests {
  private let canary = Sandbox.canary()

  /// The arguments or variables of every visible process except this one, from `/proc`.
  private func processes(_ what: String) throws -> [String: Data] {
    var found: [String: Data] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: "/proc") where Int32(name) != nil {
      // `nil` if the process has ended.
      found[name] = FileManager.default.contents(atPath: "/proc/\(name)/\(what)")
    }
    found["\(getpid())"] = nil
    return found
  }

  private func holders(of what: String) throws -> [String] {
    try processes(what).filter { $0.value.range(of: Data(canary.utf8)) != nil }.map(\.key)
  }

  @Test func noProcessExposesTheValueWhileItIsStoredAndRead() throws {
    let sandbox = try Sandbox()
    #expect(try sandbox.shell("secret init").status == 0)

    // `set` holds the value while it waits for the rest of its input.
    let terminal = try Pseudoterminal("secret set a", in: sandbox)
    try terminal.wait(for: "Value of a: ")
    terminal.type(canary + "\n")
    try terminal.wait(for: "Repeat the value: ")
    #expect(try holders(of: "cmdline").isEmpty)
    #expect(try holders(of: "environ").isEmpty)
    terminal.type(canary + "\n")
    #expect(try terminal.end() == 0)

    // `get` holds the value while it waits for its reader.
    let reading = try Pseudoterminal(
      "head -c 1000000 /dev/zero | secret set big; mkfifo f; secret get a > value; secret get big > f & "
        + "exec 3<f; echo ready; read line; cat <&3 >/dev/null", in: sandbox)
    try reading.wait(for: "ready")
    #expect(try holders(of: "cmdline").isEmpty)
    #expect(try holders(of: "environ").isEmpty)
    reading.type("\n")
    #expect(try reading.end() == 0)
    #expect(try sandbox.shell("cat value").outputText == canary)
    #expect(try sandbox.shell("rm value; grep -r -l -F \(canary) .. ").outputText == "")
  }

  @Test(arguments: ["", "--restart", "--file F=a"])
  func runPassesTheValueOnlyToTheCommand(_ options: String) throws {
    let sandbox = try Sandbox()
    #expect(try sandbox.shell("secret init && secret set a", input: Data(canary.utf8)).status == 0)
    let terminal = try Pseudoterminal(
      "secret run \(options) --set A=a -- sh -c 'sh -c \"echo ready; read line\"; true'; true", in: sandbox)
    try terminal.wait(for: "ready")
    #expect(try holders(of: "cmdline").isEmpty)
    // The command and its child, but not the shell that ran the tool. This shows too that the search works.
    #expect(try holders(of: "environ").count == 2)
    terminal.type("\n")
    #expect(try terminal.end() == 0)
  }

  /// The relay of `run --redact` has a file in memory with the whole environment. The command must not inherit it.
  @Test(arguments: [true, false]) func theCommandInheritsNoFileWithTheValues(isOnTerminal: Bool) throws {
    let sandbox = try Sandbox()
    #expect(try sandbox.shell("secret init && secret set a", input: Data(canary.utf8)).status == 0)
    let command = #"exec secret run --redact --set A=a -- sh -c 'sh inherited >found; echo end'"#
    // Skips the standard streams, which may be pipes that never end.
    try Data("for n in $(ls /proc/$$/fd); do [ $n -le 2 ] || cat /proc/$$/fd/$n; done; true\n".utf8)
      .write(to: URL(filePath: "\(sandbox.workingDirectory)/inherited"))
    if isOnTerminal {
      let terminal = try Pseudoterminal(command, in: sandbox)
      #expect(try terminal.end() == 0 && terminal.seen.contains("end"))
    } else {
      #expect(try sandbox.shell(command).outputText == "end\n")
    }
    let found = try Data(contentsOf: URL(filePath: "\(sandbox.workingDirectory)/found"))
    #expect(found.range(of: Data(canary.utf8)) == nil)
    // The search finds the value in a file that is inherited on purpose, so it works.
    let file = #"exec secret run --redact --file A=a -- sh -c 'exec 9<"$A"; sh inherited >found'"#
    #expect(try sandbox.shell(file).status == 0)
    #expect(try sandbox.shell("cat found").outputText.contains(canary))
  }

  @Test func theKeyInTheEnvironmentIsNotPassedToTheCommand() throws {
    let sandbox = try Sandbox()
    #expect(try sandbox.shell("secret init && printf x | secret set a").status == 0)
    sandbox.environment["COFFER_KEY"] = try sandbox.shell("cat ../home/config/coffer/key").outputText
      .trimmingCharacters(in: .newlines)
    let result = try sandbox.shell("secret run --set A=a -- sh -c 'cat /proc/self/environ'")
    #expect(result.status == 0)
    #expect(result.output.range(of: Data("A=x".utf8)) != nil)
    #expect(result.output.range(of: Data("coffer-key-v1".utf8)) == nil)
  }

  @Test func otherProcessesCannotReadOrDumpTheMemory() throws {
    let sandbox = try Sandbox()
    // Runs as another user, because root may read the memory of any process.
    let user = geteuid() == 0 ? "setpriv --reuid 54321 --regid 54321 --clear-groups" : ""
    let prepared = try sandbox.shell(
      "cp $(readlink -f ../bin/secret) . && chown -R 54321 .. 2>/dev/null; \(user) ./secret init")
    #expect(prepared.status == 0, "\(prepared.errorText)")
    let terminal = try Pseudoterminal("ulimit -c unlimited; exec \(user) ./secret set a", in: sandbox)
    try terminal.wait(for: "Value of a: ")
    let limits = try String(contentsOfFile: "/proc/\(terminal.process)/limits", encoding: .utf8)
    let core = try #require(limits.split(separator: "\n").first { $0.hasPrefix("Max core file size") })
    #expect(core.split(separator: " ")[4] == "0")
    // The files in `/proc` of a process that cannot be dumped belong to root.
    let memory = "/proc/\(terminal.process)/mem"
    #expect(try FileManager.default.attributesOfItem(atPath: memory)[.ownerAccountID] as? Int == 0)
    terminal.type("\u{3}")
    #expect(try terminal.end() == -SIGINT)
  }

  /// Root can read the environment of every process. A command that root runs with `run --redact` can, too.
  ///
  /// The relay of `run --redact` is executed anew. The tool that starts an editor is the process that was given the
  /// variables.
  @Test(arguments: [
    "secret run --redact --set A=a -- sh -c 'cat /proc/$PPID/environ /proc/self/environ | base64 -w 0'",
    #"""
    cat >e <<'END'
    #!/bin/sh
    p=$PPID
    until [ "$(cat /proc/$p/comm)" = secret ]; do p=$(cut -d " " -f 4 /proc/$p/stat); done
    cat /proc/$p/environ /proc/self/environ >all
    END
    chmod +x e; EDITOR=./e secret edit a 2>said; base64 -w 0 all
    """#,
  ])
  func theEnvironmentOfTheToolDoesNotHoldTheKey(_ command: String) throws {
    let sandbox = try Sandbox()
    #expect(try sandbox.shell("secret init && printf x | secret set a").status == 0)
    let key = try sandbox.shell("cat ../home/config/coffer/key").outputText.trimmingCharacters(in: .newlines)
    sandbox.environment["COFFER_KEY"] = key
    sandbox.environment["COFFER_PASSPHRASE_COMMAND"] = "echo command-5af01"
    sandbox.environment["COFFER_PASSPHRASE_FILE"] = "/file-5af02"
    sandbox.environment["COFFER_PASSPHRASE_FD"] = "97531"
    // A variable whose name only begins like one of them stays.
    sandbox.environment["COFFER_KEYS"] = "kept-5af03"
    sandbox.environment["XDG_CONFIG_HOME"] = "\(sandbox.directory)/none"
    let result = try sandbox.shell(command)
    let data = try #require(Data(base64Encoded: result.output), "\(result.outputText)")
    if geteuid() == 0 {
      // Both environments were read, and both have the other variables.
      for variable in ["XDG_STATE_HOME=", "COFFER_KEYS=kept-5af03"] {
        #expect(data.split(separator: 0).count { $0.starts(with: Data(variable.utf8)) } == 2, "\(variable)")
      }
    }
    for text in ["coffer-key-v1", String(key.suffix(20)), "command-5af01", "/file-5af02", "97531"] {
      #expect(data.range(of: Data(text.utf8)) == nil, "\(text)")
    }
  }
}
