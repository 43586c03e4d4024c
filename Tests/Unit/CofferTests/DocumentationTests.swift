import CofferTestSupport
import Foundation
import Testing

/// Checks the code fences of every document: Swift fences compile, and shell fences name existing commands.
@Suite struct DocumentationTests {
  private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()
  /// The directory of this build: the modules and `secret` are beside the test's own program.
  private static let build = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()

  /// The documents at the root and below `Documentation`, `Examples` and `Sources`, by their paths below the root.
  private static let documents: [String] = {
    let places: [(directory: URL, options: FileManager.DirectoryEnumerationOptions)] = [
      (root, .skipsSubdirectoryDescendants),
      (root.appending(path: "Documentation"), []),
      (root.appending(path: "Examples"), .skipsSubdirectoryDescendants),
      (root.appending(path: "Sources"), []),
    ]
    return places.flatMap { place in
      let files = FileManager.default.enumerator(
        at: place.directory,
        includingPropertiesForKeys: nil,
        options: place.options
      )
      return (files?.allObjects ?? []).compactMap { $0 as? URL }
    }
    .filter { $0.pathExtension == "md" }.map { String($0.path().dropFirst(root.path().count)) }.sorted()
  }()

  /// The fences of `language` in a document, in order.
  private static func fences(_ language: String, in document: String) throws -> [String] {
    let text = try String(contentsOf: root.appending(path: document), encoding: .utf8)
    return text.components(separatedBy: "```\(language)\n").dropFirst().map {
      $0.components(separatedBy: "\n```")[0]
    }
  }

  @Test func theReadmeHasFencesOfBothLanguages() throws {
    #expect(Self.documents.count > 20)
    #expect(try Self.fences("swift", in: "README.md").count >= 3)
    #expect(try Self.fences("sh", in: "README.md").count >= 3)
  }

  @Test(arguments: documents) func swiftFencesCompile(_ document: String) throws {
    let fences = try Self.fences("swift", in: document)
    if fences.isEmpty { return }
    let directory = try TemporaryDirectory()
    for (index, fence) in fences.enumerated() {
      let file = try directory.write(fence, to: "Fence\(index).swift")
      let isManifest = fence.contains("import PackageDescription")
      let flags = try isManifest ? Self.manifestFlags() : LibraryFlags.current()
      let result = try Self.run(["swiftc", "-typecheck", "-swift-version", "6"] + flags + [file])
      #expect(result.status == 0, "\(fence)\n\(result.errorText)")
    }
  }

  /// A shell fence parses, and each call of `secret` in it names an existing command and existing options.
  @Test(arguments: documents) func shellFencesNameExistingCommands(_ document: String) throws {
    let commands = try Self.commands.get()
    for fence in try Self.fences("sh", in: document) {
      let result = try Self.run(["bash", "-n", "-c", fence])
      #expect(result.status == 0, "\(fence)\n\(result.errorText)")
      for call in ShellCall.calls(in: fence) {
        let problem = call.problem(with: commands)
        #expect(problem == nil, "\(document): secret \(call.words.joined(separator: " ")): \(problem ?? "")")
      }
    }
  }

  /// Relative links and paths in code voice, such as `Sources/Coffer`, name existing files.
  @Test(arguments: documents) func namedFilesExist(_ document: String) throws {
    let url = Self.root.appending(path: document)
    let text = try String(contentsOf: url, encoding: .utf8)
    let links = text.matches(of: /\]\((?<path>[^)#:\s]+)(#[^)\s]*)?\)/)
    for link in links {
      let target = url.deletingLastPathComponent().appending(path: link.path)
      #expect(FileManager.default.fileExists(atPath: target.path()), "\(link.path)")
    }
    for name in text.matches(
      of: /`(?<path>(Sources|Tests|Fuzz|Scripts|Documentation|Examples|Benchmarks)\/[\w.+\/-]*)/)
    {
      #expect(FileManager.default.fileExists(atPath: Self.root.path() + name.path), "\(name.path)")
    }
  }

  private static func manifestFlags() throws -> [String] {
    let result = try run(["swiftc", "-print-target-info"])
    #expect(result.status == 0, "\(result.errorText)")
    let info = try JSONDecoder().decode(TargetInfo.self, from: Data(result.outputText.utf8))
    let library = "\(info.paths.runtimeResourcePath)/pm/ManifestAPI"
    return ["-package-description-version", "6.2", "-I", library]
  }

  private struct TargetInfo: Decodable {
    struct Paths: Decodable { let runtimeResourcePath: String }
    let paths: Paths
  }

  /// The command tree of the `secret` that this build made.
  private static let commands = Result {
    let result = try run([build.appending(path: "secret").path(), "--experimental-dump-help"])
    #expect(result.status == 0, "\(result.errorText)")
    return try JSONDecoder().decode(ToolHelp.self, from: Data(result.outputText.utf8)).command
  }

  private static func run(_ command: [String]) throws -> ChildProcess.Result {
    try ChildProcess.run(command, environment: ProcessInfo.processInfo.environment)
  }
}

/// What `--experimental-dump-help` prints.
private struct ToolHelp: Decodable {
  let command: Command

  struct Command: Decodable {
    let commandName: String
    let subcommands: [Command]?
    let arguments: [Argument]?

    /// The options of the command, each with whether it takes a value.
    var options: [String: Bool] {
      var options: [String: Bool] = [:]
      for argument in arguments ?? [] {
        for name in argument.names ?? [] {
          options[(name.kind == "long" ? "--" : "-") + name.name] = argument.kind == "option"
        }
      }
      return options
    }
  }

  struct Argument: Decodable {
    struct Name: Decodable {
      let kind: String
      let name: String
    }
    let kind: String
    let names: [Name]?
  }
}

/// One call of `secret` in a shell fence.
private struct ShellCall {
  /// The words after `secret`.
  let words: [String]

  static func calls(in fence: String) -> [ShellCall] {
    let text = fence.replacingOccurrences(of: "\\\n", with: " ")
    return text.split(separator: "\n").flatMap { line in
      var calls: [ShellCall] = []
      var call: [String]?
      var isCommandNext = true
      for word in line.split(separator: " ").map(String.init) {
        if word.hasPrefix("#") { break }
        if ["|", "&&", "do", "<", ">"].contains(word) || word.hasSuffix(";") || word.hasSuffix(")") {
          if let words = call { calls.append(ShellCall(words: words)) }
          call = nil
          isCommandNext = true
          continue
        }
        if isCommandNext && word == "secret" || word.hasSuffix("$(secret") {
          call = []
        } else {
          call?.append(word)
        }
        let isAssignment = isCommandNext && word.contains("=")
        isCommandNext = isAssignment
      }
      if let words = call { calls.append(ShellCall(words: words)) }
      return calls
    }
  }

  /// What is wrong with the call, or `nil`. Words after `--` belong to another program.
  func problem(with root: ToolHelp.Command) -> String? {
    // The global options may come before the command, and every command that accepts them lists them.
    var command = root
    var options = root.subcommands?.first { $0.commandName == "get" }?.options ?? [:]
    var rest = words.prefix { $0 != "--" }[...]
    while let word = rest.popFirst() {
      if word.hasPrefix("-"), word != "-" {
        let name = word.split(separator: "=", maxSplits: 1).first.map(String.init) ?? word
        guard let takesValue = options[name] else { return "unknown option \(name)" }
        if takesValue, name == word { rest = rest.dropFirst() }
      } else if let next = command.subcommands?.first(where: { $0.commandName == word }) {
        command = next
        options = next.subcommands == nil ? next.options : options
        if word == "help" { return nil }
      } else if command.subcommands != nil {
        return "unknown command \(word)"
      }
    }
    return command.subcommands == nil ? nil : "no command"
  }
}
