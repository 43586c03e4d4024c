internal import ArgumentParser
internal import FoundationEssentials

/// A command with its arguments and subcommands, as the argument parser describes it. The arguments are described only
/// when they are needed, because to describe all commands takes much longer.
final class CommandDescription {
  private let type: any ParsableCommand.Type
  /// For the root command: a command that has the options which may precede a command's name.
  private let example: (any ParsableCommand.Type)?

  init(_ type: any ParsableCommand.Type, optionsLike example: (any ParsableCommand.Type)? = nil) {
    (self.type, self.example) = (type, example)
  }

  var name: String { type._commandName }
  var abstract: String { type.configuration.abstract }
  var isShown: Bool { type.configuration.shouldDisplay }
  var subcommands: [CommandDescription] { type.configuration.subcommands.map { CommandDescription($0) } }

  private(set) lazy var arguments: [Argument] = {
    // The root's description contains those of all commands, and it has no arguments of its own.
    if example != nil { return [] }
    // If a later version of the argument parser has another form, a test notices it.
    let tool = try? JSONDecoder().decode(Tool.self, from: Data(type._dumpHelp().utf8))
    return tool?.command.arguments ?? []
  }()

  var positionals: [Argument] { arguments.filter { $0.kind == .positional && $0.shouldDisplay } }

  /// The options and flags. For the root command, options that ``ArgumentOrder`` accepts before a command's name.
  var options: [Argument] {
    if let example {
      let shared = ["--backend", "--vault", "--service", "--json", "--help"]
      return CommandDescription(example).options.filter { $0.texts.contains(where: shared.contains) }
    }
    return arguments.filter { $0.kind != .positional && $0.shouldDisplay }
  }

  func option(_ text: String) -> Argument? {
    options.first { $0.texts.contains(text) }
  }

  private struct Tool: Decodable {
    struct Command: Decodable { let arguments: [Argument]? }
    let command: Command
  }
}

extension CommandDescription {
  struct Argument: Decodable {
    enum Kind: String, Decodable { case positional, option, flag }
    struct Name: Decodable {
      let kind: String
      let name: String
    }
    struct Completion: Decodable {
      struct List: Decodable { let values: [String] }
      struct Command: Decodable { let command: String }
      struct Other: Decodable {}
      let list: List?
      let shellCommand: Command?
      let file: Other?
    }

    let kind: Kind
    let isRepeating: Bool
    let parsingStrategy: String
    let shouldDisplay: Bool
    let names: [Name]?
    let abstract: String?
    let completionKind: Completion?

    /// The names of an option as they are written on a command line.
    var texts: [String] { (names ?? []).map { ($0.kind == "long" ? "--" : "-") + $0.name } }

    /// The kind of text in the store that completes the argument.
    var completedValue: CompletedValue? {
      (completionKind?.shellCommand?.command).flatMap(CompletedValue.init(rawValue:))
    }
  }
}
