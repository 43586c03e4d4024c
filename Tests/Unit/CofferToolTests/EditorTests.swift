import CofferTestSupport
import Foundation
import Testing

@testable import CofferTool

/// Real editors, with configurations that keep as much as they can, leave nothing of what they edited.
@Suite(.needs("vim", "vim.tiny", "nvim", "nano", "micro", "emacs")) struct EditorTests {
  struct Editor: Sendable, CustomTestStringConvertible {
    let command: String
    /// Cuts the only line, types another one, saves and exits.
    let keys: @Sendable (String) -> [String]
    /// Whether the editor, started as usual, keeps copies under the configuration below.
    var keepsCopies = true
    var testDescription: String { command }

    static func vim(_ command: String, keepsCopies: Bool = true) -> Editor {
      Editor(
        command: command, keys: { ["yyp", "dd", "cc\($0)\u{1B}", ":w\r", "yyp", "dd", ":wq\r"] },
        keepsCopies: keepsCopies)
    }
  }
  static let editors = [
    Editor.vim("vim"), .vim("vi"), .vim("vim -c 'set number'"), .vim("nvim"),
    .vim("vim.tiny", keepsCopies: false),
    Editor(command: "nano", keys: { ["\u{0B}", $0, "\u{0F}", "\r", "\u{18}"] }),
    Editor(command: "micro", keys: { ["\u{01}", $0, "\u{13}", "\u{11}"] }),
    Editor(
      command: "emacs -nw", keys: { ["\u{0B}", $0, "\u{18}\u{13}", "\u{18}\u{03}"] }),
  ]

  /// Settings that write backups, undo files, swap files, histories and registers to the home directory.
  private static let configuration = [
    ".vimrc": """
    set undofile undodir=~/kept backup writebackup backupdir=~/kept directory=~/kept swapfile updatecount=1 patchmode=.orig
    set viminfo='100,<500,s100,h
    autocmd BufReadPost * setlocal undofile
    """,
    "config/nvim/init.vim": """
    set undofile undodir=~/kept backup writebackup backupdir=~/kept directory=~/kept swapfile updatecount=1 patchmode=.orig
    """,
    // As root, nano takes the home directory from the password file.
    "config/nano/nanorc": "set backup\nset backupdir \"{home}/kept\"\nset historylog\nset positionlog\n",
    "config/micro/settings.json":
      #"{"saveundo": true, "permbackup": true, "savehistory": true, "savecursor": true, "autosave": 1}"#,
    ".emacs": """
    (setq backup-directory-alist '((".*" . "~/kept")) vc-make-backup-files t
          auto-save-file-name-transforms '((".*" "~/kept/" t)) auto-save-interval 20 auto-save-timeout 1)
    (savehist-mode 1)
    (setq savehist-additional-variables '(kill-ring))
    """,
  ]

  private let sandbox: Sandbox
  private let old = "old-\(UUID().uuidString)"
  private let new = "new-\(UUID().uuidString)"

  init() throws {
    sandbox = try Sandbox()
    sandbox.environment["TERM"] = "xterm"
    for (name, text) in Self.configuration {
      let path = "\(sandbox.directory)/home/\(name)"
      try FileManager.default.createDirectory(
        atPath: (path as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
      try Data(text.replacingOccurrences(of: "{home}", with: sandbox.directory + "/home").utf8).write(
        to: URL(fileURLWithPath: path))
    }
    #expect(
      try sandbox.shell("mkdir ../home/kept; secret init; printf \(old) | secret set a; touch start").status
        == 0)
  }

  /// Edits the secret `a` with the keys of `editor`. Returns what was shown.
  private func edit(_ editor: Editor, as command: String) throws -> String {
    sandbox.environment["EDITOR"] = command
    let terminal = try Pseudoterminal("exec secret edit a", in: sandbox, rows: 24, columns: 100)
    try terminal.wait(for: old)
    for keys in editor.keys(new) {
      usleep(200_000)
      terminal.type(keys)
    }
    #expect(try terminal.end() == 0, "\(terminal.seen)")
    #expect(try sandbox.shell("secret get a").outputText == new)
    return terminal.seen
  }

  /// The new files with the old or the new value in every directory that an editor may write to.
  private func copies() throws -> String {
    try sandbox.shell(
      """
      find .. /tmp /var/tmp /dev/shm /run -xdev -cnewer start -type f -size -20M \
        -exec grep -laF -e \(old) -e \(new) {} + 2>/dev/null | sort -u; true
      """
    ).outputText
  }

  @Test(arguments: editors) func aKnownEditorLeavesNothing(_ editor: Editor) throws {
    let seen = try edit(editor, as: editor.command)
    #expect(!seen.contains("may keep copies"), "\(seen)")
    #expect(try copies() == "")
    #expect(try sandbox.shell("ls -A ../home/kept ../tmp").outputText == "../home/kept:\n\n../tmp:\n")
  }

  /// A script may start any editor. This also shows that the search finds the copies that an editor keeps.
  @Test(arguments: editors) func aScriptIsNotAKnownEditor(_ editor: Editor) throws {
    let script = "\(sandbox.directory)/bin/vim"
    let program = editor.command.split(separator: " ")[0]
    try Data(
      "#!/bin/sh\nPATH=/usr/bin:/bin exec \(program) \(editor.command.dropFirst(program.count)) \"$@\"\n".utf8
    )
    .write(to: URL(fileURLWithPath: script))
    chmod(script, 0o755)
    let seen = try edit(editor, as: "vim")
    #expect(seen.contains("secret: The editor “vim” may keep copies of the value"))
    if editor.keepsCopies { #expect(try !copies().isEmpty) }
  }
}

/// How editors are recognized and started.
@Suite struct EditorCommandTests {
  private let sandbox: Sandbox

  /// Programs with these names exist. The first two bytes are those of a binary.
  init() throws {
    sandbox = try Sandbox()
    for name in ["vim.basic", "nvim", "nano", "emacs-nox", "emacsclient.emacs", "micro", "busybox"] {
      try Data("\u{7F}ELF".utf8).write(to: URL(fileURLWithPath: "\(sandbox.directory)/bin/\(name)"))
    }
    try Data("#!/bin/sh\n".utf8).write(to: URL(fileURLWithPath: "\(sandbox.directory)/bin/code"))
    try Data("#!/bin/sh\n".utf8).write(to: URL(fileURLWithPath: "\(sandbox.directory)/bin/vim.script"))
    #expect(
      try sandbox.shell(
        """
        cd ../bin; chmod +x *; ln -s vim.basic vim; ln -s vim vi; ln -s busybox ex; ln -s "$PWD/emacs-nox" emacs
        ln -s nvim nv; ln -s emacsclient.emacs emacsclient
        """
      ).status == 0)
  }

  private func command(_ text: String) -> EditorCommand {
    let words = text.split(separator: " ", maxSplits: 1).map(String.init)
    return EditorCommand(
      ([sandbox.directory + "/bin/" + words[0]] + words.dropFirst()).joined(separator: " "),
      directory: "/private")
  }

  @Test(arguments: [
    ("vim", "NONE"), ("vi", "NONE"), ("vim.basic -u x", "NONE"), ("nv", "NONE"),
    ("nano -w --mouse", "--ignorerc"),
    ("emacs -nw", "auto-save-default nil"), ("micro", "-config-dir /private -backup false"),
    ("code", "/private/code"),
    ("code --wait", "--wait"),
  ]) func aKnownEditorGetsItsOptions(_ text: String, _ option: String) {
    let editor = command(text)
    #expect(editor.options?.joined(separator: " ").contains(option) == true)
    #expect(editor.note == nil)
  }

  @Test(arguments: [
    "ex", "vim.script", "nosuch", "emacsclient", "vim --", "vim; cat", "vim & cp", "vim | cat",
    "vim `touch x`", "vim $X",
    "nano -B", "nano -wB", "nano --backup", "nano --histor", "nano -P", "nano -G", "nano -C ~",
    "nano --rcfile x",
  ]) func anyOtherEditorHasANote(_ text: String) {
    let editor = command(text)
    #expect(editor.options == nil)
    #expect(editor.note?.contains("may keep copies") == true)
  }

  @Test func anEditorIsFoundLikeAShellFindsIt() throws {
    // The directory of the command decides, not its name.
    for text in ["$EDITOR", "'vim'", "~/vim", "X=1 vim", "\\vim", "", " "] {
      #expect(EditorCommand(text, directory: "/private").options == nil)
    }
    #expect(
      try sandbox.shell("printf x | secret set --vault V a 2>/dev/null; secret init; printf x | secret set a")
        .status == 0)
    sandbox.environment["PATH"] = sandbox.directory + "/bin:" + (sandbox.environment["PATH"] ?? "")
    // In a remote window, `code` does not start its own editor.
    sandbox.environment["EDITOR"] = "code"
    #expect(try sandbox.shell("secret edit a").errorText == "Nothing was changed.\n")
    sandbox.environment["VSCODE_IPC_HOOK_CLI"] = "/socket"
    #expect(try sandbox.shell("secret edit a").errorText.contains("may keep copies"))
  }

  @Test func anEditorGetsAPrivateDirectoryForItsFilesWhichIsRemoved() throws {
    try Data(
      """
      #!/bin/sh
      # The last arguments are --user-data-dir, its directory and the file.
      while [ $# -gt 2 ]; do test "$1" = --user-data-dir && data=$2; shift; done
      mkdir -p "$data/User/History/a"; cp "$2" "$data/User/History/a/b"; ln -s "$PWD/outside" "$data/link"
      ln -s "$PWD" "$TMPDIR/directory"
      echo "$TMPDIR $data" > where; printf changed > "$2"
      """.utf8
    ).write(to: URL(fileURLWithPath: "\(sandbox.directory)/bin/code"))
    sandbox.environment["EDITOR"] = "code -r"
    let result = try sandbox.shell(
      """
      secret init && printf x | secret set a && echo outside > outside && secret edit a && secret get a
      read temporary data < where; test "$data" = "$temporary/code" && test ! -e "$temporary" && cat outside
      """)
    #expect(result.outputText == "changedoutside\n", "\(result.errorText)")
  }
}
