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

  /// Second names of the files show what was in them when they were removed.
  @Test func everyFileInTheDirectoryOfTheEditorIsOverwrittenBeforeItIsRemoved() throws {
    let sandbox = try Sandbox()
    #expect(try sandbox.shell("secret init && printf hunter2 | secret set a").status == 0)
    let kept = try TemporaryDirectory(inMemory: true)
    try kept.write("of somebody else", to: "other")
    try kept.write("of somebody else", to: "directory/other")
    sandbox.environment["KEPT"] = kept.path
    let editor = sandbox.directory + "/bin/editor"
    // The editor leaves a file of several blocks, files in directories, links to files of somebody else, and pipes.
    try Data(
      """
      #!/bin/sh
      set -e
      cd "$(dirname "$1")"
      pwd > "$KEPT/where"
      printf changed > "$1"
      yes secret | head -c 200000 > backup
      mkdir -p below/deep
      printf copy > below/deep/copy
      ln value "$KEPT/value"; ln backup "$KEPT/backup"; ln below/deep/copy "$KEPT/copy"
      ln -s "$KEPT/other" link; ln -s "$KEPT/directory" links; ln -s "$KEPT/other" below/link
      mkfifo fifo below/fifo
      """.utf8
    ).write(to: URL(fileURLWithPath: editor))
    chmod(editor, 0o755)
    sandbox.environment["EDITOR"] = editor
    let result = try sandbox.shell("secret edit a && secret get a")
    #expect(result.status == 0 && result.outputText == "changed", "\(result.errorText)")
    for (name, size) in [("value", 7), ("backup", 200_000), ("copy", 4)] {
      #expect(try Data(contentsOf: URL(filePath: kept.file(name))) == Data(count: size), "\(name)")
    }
    for name in ["other", "directory/other"] { #expect(try kept.text(of: name) == "of somebody else") }
    let directory = try kept.text(of: "where").trimmingCharacters(in: .newlines)
    #expect(
      directory.hasPrefix("/dev/shm/secret-edit-") && !FileManager.default.fileExists(atPath: directory))
  }
}
