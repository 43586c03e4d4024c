/// What may follow on an unfinished command line, for any shell. No text has quotes.
struct Completion {
  struct Candidate: Hashable {
    /// The whole word.
    let text: String
    var description: String?
  }

  /// What a shell completes by itself.
  enum Other: String {
    case files
    /// A command with arguments of its own, after the first `--`.
    case command
  }

  var candidates: [Candidate] = []
  var other: Other?

  /// The state after the words before the cursor.
  private var command: CommandDescription
  private var pending: CommandDescription.Argument?
  private var given = 0
  private var isTerminated = false
  private var stored = StoredTexts()

  /// Completes `current`, the word before the cursor, after `words`, which do not include the name of `root`. A word is
  /// `nil` if only the shell knows its text. Candidates need not begin with `current`.
  init(of current: String, after words: [String?], of root: CommandDescription) {
    command = root
    for word in words { read(word) }
    complete(current)
  }

  private mutating func read(_ word: String?) {
    if let argument = pending.take() { return stored.select(argument, word) }
    guard let word, !isTerminated, word.hasPrefix("-"), word != "-" else {
      guard let word, !isTerminated, given == 0, let next = command.subcommands.first(where: { $0.name == word })
      else { return given += 1 }
      return command = next
    }
    if word == "--" {
      isTerminated = true
    } else if word.hasPrefix("--") {
      let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
      guard let option = command.option(parts[0]), option.kind == .option else { return }
      if parts.count == 2 { stored.select(option, parts[1]) } else { pending = option }
    } else if let option = command.option(String(word.prefix(2))), option.kind == .option {
      if word.utf8.count > 2 { stored.select(option, String(word.dropFirst(2))) } else { pending = option }
    }
  }

  private mutating func complete(_ current: String) {
    if let argument = pending { return complete(argument, current, isAfterDash: false) }
    if !isTerminated, current.hasPrefix("-") { return completeOption(current) }
    let subcommands = command.subcommands.filter(\.isShown)
    if !isTerminated, given == 0, !subcommands.isEmpty {
      return candidates = subcommands.map { Candidate(text: $0.name, description: $0.abstract) }
    }
    let positionals = command.positionals
    guard let argument = given < positionals.count ? positionals[given] : positionals.last,
      given < positionals.count || argument.isRepeating
    else { return }
    if argument.parsingStrategy == "postTerminator" {
      if isTerminated { other = .command } else { candidates = [Candidate(text: "--")] }
    } else {
      complete(argument, current, isAfterDash: isTerminated)
    }
  }

  private mutating func completeOption(_ current: String) {
    if current.hasPrefix("--"), let equals = current.firstIndex(of: "=") {
      let name = String(current[..<equals])
      guard let option = command.option(name), option.kind == .option else { return }
      return complete(option, String(current[equals...].dropFirst()), before: name + "=", isAfterDash: true)
    }
    if current.utf8.starts(with: "-s".utf8), current.utf8.count > 2, let option = command.option("-s") {
      return complete(option, String(current.dropFirst(2)), before: "-s", isAfterDash: true)
    }
    candidates = command.options.flatMap { option in
      option.texts.map { Candidate(text: $0, description: option.abstract) }
    }
    if command.positionals.first?.parsingStrategy == "postTerminator" {
      candidates.append(Candidate(text: "--"))
    }
  }

  /// Completes a value whose beginning `text` is typed. `prefix` precedes the value in its word. Unless `isAfterDash`,
  /// the parser would take a value that begins with a hyphen for an option.
  private mutating func complete(
    _ argument: CommandDescription.Argument, _ text: String, before prefix: String = "", isAfterDash: Bool
  ) {
    let kind = argument.completionKind
    if kind?.file != nil { return other = .files }
    var texts = kind?.list?.values ?? []
    switch argument.completedValue {
    case .assignment?:
      guard let equals = text.firstIndex(of: "=") else { break }
      texts = stored.texts(for: .assignment).map { text[...equals] + $0 }
    case let value?: texts = stored.texts(for: value)
    case nil: break
    }
    candidates = texts.filter { isAfterDash || !$0.hasPrefix("-") }.map { Candidate(text: prefix + $0) }
  }
}
