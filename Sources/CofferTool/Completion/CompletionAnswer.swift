/// The records that the completion script of a shell reads: first `words`, or what the shell completes by itself, and
/// then the candidates in the form that the script expects.
struct CompletionAnswer {
  let root: CommandDescription

  /// `line` is the line up to the cursor, `end` is the part of it that bash replaces, and `type` is `COMP_TYPE`.
  func bash(line: String, end: String, type: String) -> [String] {
    guard let line = BashLine(line, replacing: end), let current = line.current else { return [] }
    if line.isRedirected { return [Completion.Other.files.rawValue] }
    let completion = Completion(of: current, after: Array(line.words.dropFirst()), of: root)
    if let other = completion.other { return [other.rawValue] }
    let names = completion.candidates.map(\.text).filter { $0.utf8.starts(with: current.utf8) }
    guard let first = names.first else { return [] }
    let words: [String] =
      switch type {
      // 63 is “?”: bash only shows this list, after a second Tab.
      case "63": names.map(\.printable)
      case _ where names.count == 1: [line.inserted(first, isWhole: true)]
      // The Tab key inserts what the names have in common. bash would compare quoted texts, and could stop in the
      // middle of a quoted character. So it gets two texts that differ only after the common part.
      case "9":
        ["0", "1"].map { line.inserted(Self.commonPrefix(names), isWhole: false) + $0 }
      default: names.map { line.inserted($0, isWhole: false) }
      }
    return ["words"] + words
  }

  /// The longest text that begins every name, in whole characters.
  static func commonPrefix(_ names: [String]) -> String {
    var common = Substring(names.first ?? "").unicodeScalars
    for name in names.dropFirst() {
      common = common.prefix(zip(common, name.unicodeScalars).prefix { $0 == $1 }.count)
    }
    return String(common)
  }

  /// `words` are the words after the program's name without quotes; the last one is unfinished. Each candidate has two
  /// records: the text, which zsh quotes, and the text that zsh lists. Texts that a terminal would obey or hide are
  /// left out, because zsh would show them as they are.
  func zsh(_ words: [String]) -> [String] {
    let completion = Completion(of: words.last ?? "", after: words.dropLast(), of: root)
    return answer(completion) { candidate in
      [candidate.text, candidate.text + (candidate.description.map { "  -- \($0)" } ?? "")]
    }
  }

  /// The candidates for fish. Each candidate is one line: the text, and after a tab its description.
  func fish(_ words: [String]) -> [String] {
    let typed = words.last ?? ""
    let current = typed.filter { !"\"'\\".contains($0) }
    // fish quotes everything but a leading tilde, which it would expand.
    let isTildeQuoted = typed.first.map { "\"'\\".contains($0) } ?? false
    let completion = Completion(of: current, after: words.dropLast(), of: root)
    return answer(completion) { candidate in
      if !isTildeQuoted && candidate.text.hasPrefix("~") { return [] }
      return [candidate.text + (candidate.description.map { "\t" + $0 } ?? "")]
    }
  }

  /// The records of the candidates that a shell may show as they are.
  private func answer(_ completion: Completion, _ records: (Completion.Candidate) -> [String]) -> [String] {
    if let other = completion.other { return [other.rawValue] }
    let shown = completion.candidates.filter { !$0.text.unicodeScalars.contains(where: \.isUnsafeOnTerminal) }
    return ["words"] + shown.flatMap(records)
  }
}
