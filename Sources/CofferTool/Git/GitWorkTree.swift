internal import Coffer
internal import CofferSystem
internal import CofferLibc

/// Asks git about a file in a work tree.
enum GitWorkTree {
  private static var configuration: BackendConfiguration { .current() }

  /// Throws a failure if the key file is in a work tree, and git does not ignore it or cannot be asked: a commit may
  /// publish it. `advice` is the end of the message.
  static func requireIgnored(_ path: String, advice: String = "or add it to .gitignore.") throws(Failure) {
    let place = place(of: path)
    guard configuration.isInWorkTree(place.directory + "/name"), answer(["check-ignore", "-q"], place) == nil
    else { return }
    throw Failure(
      .refused,
      """
      The key file \(path) is in a git work tree, and git does not say that it is ignored: a commit could publish it. \
      Nothing was created. Choose another place, \(advice)
      """)
  }

  /// Whether git tracks the file. With `isUnmerged`: whether it also lists the file as unmerged.
  static func tracks(_ path: String, isUnmerged: Bool = false) -> Bool {
    let (place, option) = (place(of: path), isUnmerged ? "--unmerged" : "--cached")
    return configuration.isInWorkTree(place.directory + "/name")
      && answer(["ls-files", option, "--error-unmatch"], place) != nil
  }

  /// What git does when it asks for a merge.
  enum Operation {
    /// It joins two branches.
    case merge
    /// It takes single commits, which a person has chosen, or changes that are not committed.
    case pick
    /// It takes all commits of a branch, one after the other.
    case rebase
    /// It undoes a commit.
    case revert
    /// It repeats a merge in order to show what was changed in it.
    case view
    /// Nothing tells.
    case unknown
  }

  /// What git does with the vault at `path`, by the command that has started this process, directly or through a shell,
  /// and by the state in the repository's directory. Whoever pushes a branch or sends a patch can choose neither.
  static func operation(on path: String) -> Operation {
    let place = place(of: path)
    let directory = answer(["rev-parse", "--absolute-git-dir"], place, namesFile: false)?.dropLast()
    func state(_ name: String) -> String? { directory.flatMap { text("\($0)/\(name)") } }
    func has(_ name: String) -> Bool { directory.map { FileStatus(of: "\($0)/\(name)") != nil } ?? false }
    func named(_ words: ArraySlice<String>) -> Operation? {
      switch words.first {
      case "merge", "pull", "merge-tree", "merge-recursive": .merge
      case "revert": .revert
      case "cherry-pick": .pick
      case "rebase" where words.contains(where: isInteractive): .pick
      case "log", "show", "diff", "format-patch", "whatchanged", "reflog": .view
      // These may also go on with a merge or a rebase.
      case "am", "apply", "checkout", "switch", "restore": inProgress ?? .pick
      // Also at the end of a merge or a rebase with --autostash.
      case "stash": .pick
      default: inProgress
      }
    }
    var inProgress: Operation? {
      if has("rebase-merge") || has("rebase-apply/rebasing") {
        return hasFewerCommits { state("rebase-merge/\($0)") } ? .pick : .rebase
      }
      if has("REVERT_HEAD") { return .revert }
      return has("MERGE_HEAD") ? .merge : has("rebase-apply") || has("CHERRY_PICK_HEAD") ? .pick : nil
    }
    let words = command
    if let operation = named(words) { return operation }
    guard let word = words.first else { return .unknown }
    let alias = answer(["config", "--get", "alias.\(word)"], place, namesFile: false) ?? ""
    return named(withoutOptions(alias.split(whereSeparator: \.isWhitespace).map(String.init)[...])) ?? .unknown
  }

  /// The words of the command of git that has started this process, without the options of git itself.
  private static var command: ArraySlice<String> {
    var process = getppid()
    for _ in 0..<2 {
      guard let command = text("/proc/\(process)/cmdline") else { break }
      let words = command.split(separator: "\0").map(String.init)
      if let program = words.first, Path.name(of: program) == "git" { return withoutOptions(words.dropFirst()) }
      let status = text("/proc/\(process)/stat")?.split(separator: ")").last?.split(separator: " ")
      guard let status, status.count > 1, let parent = pid_t(status[1]) else { break }
      process = parent
    }
    return []
  }

  /// Whether git keeps the merge for which it asks.
  static var keepsMerge: Bool { command.first != "merge-tree" }

  /// Whether the rebase that runs has already put a commit with a change of the vault on the branch below.
  static func hasPicked(onto ours: String, _ path: String) -> Bool {
    let place = place(of: ours)
    guard let directory = answer(["rev-parse", "--absolute-git-dir"], place, namesFile: false)?.dropLast(),
      let onto = text("\(directory)/rebase-merge/onto") ?? text("\(directory)/rebase-apply/onto"),
      let below = answer(["rev-parse", "\(onto.prefix(while: \.isHexDigit)):\(path)"], place, namesFile: false)
    else { return false }
    return below != answer(["hash-object", "--no-filters"], place)
  }

  /// Whether a person took a commit out of the first list of a rebase. git keeps it, and what is done and what is left.
  private static func hasFewerCommits(_ list: (String) -> String?) -> Bool {
    func commits(_ name: String) -> Set<Substring> {
      let lines = (list(name) ?? "").split(separator: "\n").map { $0.split(separator: " ") }
      return Set(lines.filter { $0.count > 1 && $0[1].utf8.count >= 40 && !$0[0].hasPrefix("d") }.map { $0[1] })
    }
    return !commits("git-rebase-todo.backup").isSubset(of: commits("done").union(commits("git-rebase-todo")))
  }

  /// Whether the option of `git rebase` lets a person choose the commits. Single letters may stand together.
  private static func isInteractive(_ word: String) -> Bool {
    let letters = word.dropFirst()
    return word == "--interactive"
      || word.hasPrefix("-") && letters.contains("i") && letters.allSatisfy("fikmnqrv".contains)
  }

  /// The command and its arguments, without the options of git before it.
  private static func withoutOptions(_ words: ArraySlice<String>) -> ArraySlice<String> {
    let haveValues: Set = ["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--attr-source"]
    guard let first = words.first, first.hasPrefix("-") else { return words }
    return withoutOptions(words.dropFirst(haveValues.contains(first) ? 2 : 1))
  }

  private static func text(_ path: String) -> String? {
    beginning(ofFile: path, count: 1 << 20).map { String(decoding: $0, as: UTF8.self) }
  }

  /// The command that prints the file as it is now, later too: git keeps what it has committed or stashed.
  static func commandPrinting(_ path: String) -> String? {
    answer(["hash-object", "--no-filters"], place(of: path)).map { "git cat-file blob \($0.prefix(16))" }
  }

  /// The vault in a file that git made for a moment: nothing is recorded of it. Whoever reads the vault in its place
  /// afterwards compares it.
  static func temporary(_ path: String, _ prompts: [VaultCredentialSource]) -> VaultBackend {
    var options = VaultOptions()
    options.isBackup = true
    return configuration.vault(at: path, additionalCredentials: prompts, options: options)
  }

  // MARK: Settings

  /// The settings of a clone by which git merges and compares vaults.
  private static let settings = [
    ("merge.coffer.driver", "secret git-merge-driver -- %O %A %B %P"),
    // To find an ancestor, git may merge older commits. It does that without the driver, so nobody is asked. The length
    // of the markers, %L, would tell the driver too, but a commit can choose it.
    ("merge.coffer.recursive", "binary"),
    ("diff.coffer.textconv", "secret git-textconv --"),
  ]

  /// The commands that make the settings which the clone around the vault does not have, and which its attributes name.
  static func missingSettings(for path: String) -> [String] {
    guard attributes(of: path) == .right else { return [] }
    let place = place(of: path)
    return settings.filter { answer(["config", "--get", $0.0], place, namesFile: false) == nil }
      .map { "git config \($0.0) \($0.1.quotedForShell)" }
  }

  /// What a person does by hand for a vault in the work tree of a repository that lies elsewhere.
  static func settingsElsewhere(for path: String) -> String {
    let commands = settings.map { "git --git-dir=REPOSITORY config \($0.0) \($0.1.quotedForShell)" }
    return commands.joined(separator: "; ")
      + "; and add this line to REPOSITORY/info/attributes: \(attributesLine(for: path))"
  }

  /// Makes the settings in the clone around the vault, which is in a work tree. Throws a failure if git refuses.
  static func makeSettings(for path: String) throws(Failure) {
    for (name, value) in settings
    where answer(["config", name, value], place(of: path), namesFile: false) == nil {
      throw Failure(.unavailable, "git could not make its setting \(name) for the vault \(path).")
    }
  }

  // MARK: Attributes

  /// How git treats the vault as a file of a work tree.
  enum Attributes {
    /// As text: it may destroy the committed copy.
    case text
    /// As a binary file: correct, but it does not show which secrets differ.
    case binary
    /// As the line ``attributesLine(for:)`` requires.
    case right
  }

  /// Returns `nil` outside of a work tree, or if git cannot be asked.
  static func attributes(of path: String) -> Attributes? {
    guard configuration.isInWorkTree(path),
      let output = answer(["check-attr", "-z", "text", "eol", "diff", "merge"], place(of: path))
    else { return nil }
    // The path, the attribute and its value, each followed by a NUL.
    let fields = output.split(separator: "\0", omittingEmptySubsequences: false)
    var values: [Substring: Substring] = [:]
    for start in stride(from: 0, to: fields.count - 2, by: 3) {
      values[fields[start + 1]] = fields[start + 2]
    }
    let (text, eol) = (values["text"] ?? "", values["eol"] ?? "")
    if text == "unset" { return values["diff"] == "coffer" && values["merge"] == "coffer" ? .right : .binary }
    return text == "unspecified" && eol == "unspecified" || text == "auto" ? .binary : .text
  }

  /// The line of `.gitattributes` in the directory of the vault: see gitattributes(5).
  static func attributesLine(for path: String) -> String {
    let name = String(Path.name(of: path))
    var pattern = "/" + name.escaped { "*?[]\\".unicodeScalars.contains($0) ? "\\\($0)" : nil }
    let needsQuotes = pattern.unicodeScalars.contains { $0.properties.isWhitespace || $0 == "\"" || $0.value < 0x20 }
    if needsQuotes { pattern = "\"" + pattern.escaped(\.shortEscape) + "\"" }
    return "\(pattern) -text diff=coffer merge=coffer"
  }

  /// Adds the line to `.gitattributes` in the directory of the vault, unless the attributes are right already. Returns
  /// the sentence for the user, or `nil` if there is nothing to say.
  static func addAttributes(for path: String) -> String? {
    guard let found = attributes(of: path), found != .right else { return nil }
    let (file, line) = (Path.parent(of: path) + "/.gitattributes", attributesLine(for: path))
    let status = FileStatus(of: file, followingLink: false)
    do throws(SecretError) {
      if let status, !status.isRegular || status.owner != geteuid() { throw SecretError(.denied, "") }
      var text = try PrivateFile.text(of: file, as: "The file \(file)", limit: 1 << 20) ?? ""
      if !text.isEmpty && !text.hasSuffix("\n") { text += "\n" }
      try PrivateFile.write("\(text)\(line)\n".utf8.span, to: file, replacing: true)
      _ = chmod(file, (status?.mode ?? 0o644) & 0o777)
      return
        "Added a line for the vault to \(file), so that git does not take it for text. Commit that file with the vault."
    } catch {
      return textSentence(path)
    }
  }

  /// Says that git takes the vault for text, and what to do; `nil` if it does not.
  static func textSentence(_ path: String) -> String? {
    guard attributes(of: path) == .text else { return nil }
    return "git takes the vault \(path) for text, and may destroy the committed copy. Add this line to "
      + "\(Path.parent(of: path))/.gitattributes: \(attributesLine(for: path))"
  }

  /// The names of a path for records, also if it does not exist: as it is, with the links of its directory resolved,
  /// and with all links resolved.
  static func names(of path: String) throws(SecretError) -> [String] {
    let path = try Path.absolute(path)
    return [path, resolved(Path.parent(of: path)) + "/" + Path.name(of: path), resolved(path)]
  }

  /// The top of the work tree around the file, without links, or `nil` outside of one.
  static func top(of path: String) -> String? {
    answer(["rev-parse", "--show-toplevel"], place(of: path), namesFile: false).map { String($0.dropLast()) }
  }

  /// The path without links, as far as it exists.
  private static func resolved(_ path: String) -> String {
    if let real = realpath(path, nil) {
      defer { free(real) }
      return String(cString: real)
    }
    let parent = Path.parent(of: path)
    return parent == path ? path : resolved(parent) + "/" + Path.name(of: path)
  }

  /// The nearest directory that exists, and the path of the file from there. Links are resolved.
  private static func place(of path: String) -> (directory: String, rest: String) {
    let path = resolved(path)
    var directory = Path.parent(of: path)
    while FileStatus(of: directory) == nil { directory = Path.parent(of: directory) }
    let rest = path.utf8.dropFirst(directory == "/" ? 1 : directory.utf8.count + 1)
    return (directory, String(decoding: rest, as: UTF8.self))
  }

  /// Runs git on the file. Returns its output, or `nil` unless its status is 0. Git gets no variable that selects
  /// another repository. Root's git does not read the settings of another user.
  ///
  /// The repository may be hostile, so its settings must not start a program: git runs no monitor and no hook, fetches
  /// no missing objects, and may use no protocol.
  private static func answer(
    _ arguments: [String], _ place: (directory: String, rest: String), namesFile: Bool = true
  ) -> String? {
    var environment = ["GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"]
    environment["PATH"] = Environment.value("PATH")
    environment["HOME"] = BaseDirectories(environment: Environment.value).home
    do throws(SecretError) {
      let settings = ["core.fsmonitor=false", "core.hooksPath=/dev/null", "safe.bareRepository=explicit"]
      let file = namesFile ? ["--", "./" + place.rest] : []
      let git = try CapturedProcess.run(
        ["git"] + settings.flatMap { ["-c", $0] } + ["-C", place.directory] + arguments + file, named: "git",
        environment: environment, standardError: .captured, limit: 1 << 16, timeout: .seconds(10))
      return git.end == .status(0) ? try git.output.string() : nil
    } catch { return nil }
  }
}
