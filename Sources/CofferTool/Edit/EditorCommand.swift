internal import CLinux
internal import CofferSystem
internal import CofferLibc

/// The command in `VISUAL` or `EDITOR`, with the options that keep a known editor from leaving copies of the text.
///
/// A known editor is started without its user's configuration, because settings and plug-ins there could write undo
/// files, backups, swap files, histories and registers anywhere. Its temporary files, and its own directories where an
/// option selects them, are in the private directory of ``ValueFiles``.
struct EditorCommand {
  /// The command as the user wrote it. A shell runs it.
  let text: String
  /// The arguments that precede the file's path, or `nil` if the editor may leave copies of the text.
  let options: [String]?

  /// `directory` is the private directory of the file.
  init(_ text: String, directory: String) {
    self.text = text
    options = Self.program(of: text).flatMap { Self.options(for: $0, words: Self.words(text), directory) }
  }

  /// What a person should know before the editor starts, or `nil` for a known editor.
  var note: String? {
    guard options == nil else { return nil }
    return """
      secret: The editor “\(Self.words(text).first ?? text)” may keep copies of the value in backups, swap files, undo files or a history. \
      secret prevents that only for vim, nvim, nano, micro, emacs and code.
      """
  }

  /// The words of a command, separated only by blanks, even within quotes.
  private static func words(_ text: String) -> [String] {
    text.split { " \t\n".contains($0) }.map(String.init)
  }

  /// The options that make an editor leave nothing; `nil` if it is unknown, or if a word of the command undoes them.
  private static func options(for program: Program, words: [String], _ directory: String) -> [String]? {
    let arguments = words.dropFirst()
    // After `--`, an option would be the name of a file.
    if arguments.contains("--") { return nil }
    let name = program.name
    switch name {
    // The command of Visual Studio Code is a script, and so is that of its free builds.
    case "code", "code-insiders", "code-oss", "codium", "codium-insiders":
      // In a terminal of a remote window, the command passes the file to a running editor and ignores the options.
      if getenv("VSCODE_IPC_HOOK_CLI") != nil { return nil }
      return ["--wait", "--new-window", "--disable-extensions", "--user-data-dir", directory + "/code"]
    case _ where program.isScript: return nil
    // nano has no option that turns this one off again.
    case "nano": return arguments.contains(where: keepsCopiesInNano) ? nil : ["--ignorercfiles"]
    case "micro":
      let off = ["backup", "permbackup", "savehistory", "saveundo", "savecursor"]
      return ["-config-dir", directory] + off.flatMap { ["-\($0)", "false"] }
    case "nvim": return vim
    // -f: a graphical vim returns only after the text is saved.
    case _ where name == "vim" || name.hasPrefix("vim."): return ["-f"] + vim
    case _ where name == "emacs" || name.hasPrefix("emacs-"): return emacs
    default: return nil
    }
  }

  private static let vim = [
    "--clean", "-n", "-i", "NONE", "-c",
    "silent! set noundofile nobackup nowritebackup noswapfile patchmode= viminfo= verbosefile=",
  ]

  private static let emacs = [
    "-Q", "--eval",
    """
    (setq make-backup-files nil auto-save-default nil auto-save-list-file-prefix nil create-lockfiles nil \
    delete-by-moving-to-trash nil)
    """,
  ]

  /// Whether an argument of nano asks for backups, lock files or histories.
  private static func keepsCopiesInNano(_ argument: String) -> Bool {
    if argument.hasPrefix("--") { return ["--b", "--hi", "--l", "--p", "--r"].contains { argument.hasPrefix($0) } }
    return argument.hasPrefix("-") && argument.contains { "BCGHPf".contains($0) }
  }
}

extension EditorCommand {
  /// The last component of the program's path without links, and whether the file cannot be read or is a script, which
  /// could start any editor with any options.
  private typealias Program = (name: String, isScript: Bool)

  /// The program that the command starts, without the links that lead to it. `nil` if the command is more than a
  /// program with arguments, or if there is no such program.
  private static func program(of text: String) -> Program? {
    let special = Set("`$|&;<>()\n\\")
    guard !text.contains(where: special.contains), let first = words(text).first,
      !first.contains(where: { "'\"*?[]{}~=#!".contains($0) })
    else { return nil }
    guard let file = try? ProgramFile(named: first), let resolved = realpath(file.path, nil) else { return nil }
    defer { free(resolved) }
    let real = String(cString: resolved)
    let start = beginning(ofFile: real, count: 2) ?? []
    return (String(Path.name(of: real)), start.count < 2 || start == Array("#!".utf8))
  }
}
