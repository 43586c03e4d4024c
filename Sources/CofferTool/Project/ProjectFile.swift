internal import Coffer
internal import CofferConfiguration
internal import CofferCore

/// What a project's file declares: the store, and the variables of commands. It never has a secret's value.
struct ProjectFile {
  static let name = ".coffer.toml"

  struct Variable {
    let name: String
    let source: Source

    enum Source: Hashable {
      case secret(String, isOptional: Bool)
      /// A text that is not secret.
      case plain(String)
    }
  }

  private(set) var vault: String?
  /// The path for which the permission is given, if it is not that of ``vault``.
  var vaultPath: String?
  private(set) var service: String?
  private(set) var redacts = false
  private(set) var variables: [Variable] = []
  private(set) var profiles: [String: [Variable]] = [:]

  /// Parses the file at `path`. Throws `.configuration` with the line and what was expected.
  init(parsing bytes: [UInt8], of path: String) throws(SecretError) {
    do throws(LineProblem) {
      var reader = TOMLReader(bytes: bytes)
      try read(reader.read())
    } catch {
      throw SecretError(
        .configuration, "Line \(error.line) of \(path) \(error.text).",
        advice: "Correct the line, or ignore the file with --backend or --vault.")
    }
  }

  private mutating func read(_ root: TOMLTable) throws(LineProblem) {
    for entry in root.entries {
      switch entry.name {
      case "vault":
        vault = try entry.text()
        if let vault, vault.contains("://") {
          do throws(SecretError) { _ = try RemoteURL(vault) } catch {
            throw entry.problem("has a URL that cannot be used: \(error.reason.dropLast())")
          }
        }
      case "service": service = try entry.text()
      case "run":
        for entry in try entry.table() {
          guard entry.name == "redact", case .boolean(let value) = entry.value else {
            throw entry.problem("is not redact = true or redact = false")
          }
          redacts = value
        }
      case "variables": variables = try Self.variables(entry)
      case "profiles":
        for profile in try entry.table() {
          if profile.name.utf8.count > 64 { throw profile.problem("names a profile by more than 64 characters") }
          profiles[profile.name] = []
          for entry in try profile.table() {
            guard entry.name == "variables" else { throw entry.problem("is not variables") }
            profiles[profile.name] = try Self.variables(entry)
          }
        }
      default:
        throw entry.problem(
          "has an unknown name “\(entry.name)”: expected vault, service, [run], [variables] or [profiles.NAME.variables]"
        )
      }
    }
  }

  private static func variables(_ table: TOMLTable.Entry) throws(LineProblem) -> [Variable] {
    try table.table().map { entry throws(LineProblem) in
      guard EnvironmentAssignment.isVariableName(entry.name) else {
        throw entry.problem(
          "has the variable “\(entry.name)”: expected letters, digits and underscores, and no digit first")
      }
      // Some programs, such as npm and curl, read such a variable in lower case too.
      if ControllingVariables.contains(entry.name.uppercased(), isDerived: false) {
        throw entry.problem(
          "declares \(entry.name), which can change what a program runs: only --set \(entry.name)=NAME can pass it"
        )
      }
      return Variable(name: entry.name, source: try source(entry))
    }
  }

  private static func source(_ entry: TOMLTable.Entry) throws(LineProblem) -> Variable.Source {
    guard case .table(let table) = entry.value else { return .secret(try entry.secret(), isOptional: false) }
    var (secret, plain, isOptional): (String?, String?, Bool?)
    for entry in table.entries {
      switch (entry.name, entry.value) {
      case ("secret", _): secret = try entry.secret()
      case ("value", .string(let text)) where !text.utf8.contains(0): plain = text
      case ("optional", .boolean(let value)): isOptional = value
      default: throw entry.problem("has “\(entry.name)” where secret, optional or value is expected")
      }
    }
    switch (secret, plain, isOptional) {
    case (let secret?, nil, _): return .secret(secret, isOptional: isOptional ?? false)
    case (nil, let plain?, nil): return .plain(plain)
    default: throw entry.problem("needs either a secret, which may be optional, or a value")
    }
  }

  /// The variables of the file. Those of each chosen profile, in turn, replace others of the same name. Throws
  /// `.configuration` for an unknown profile.
  func variables(with chosen: [String]) throws(SecretError) -> [Variable] {
    var result = variables
    for name in chosen {
      guard let profile = profiles[name] else {
        let all = profiles.keys.sorted().joined(separator: ", ")
        throw SecretError(
          .configuration, "The project's file has no profile “\(name)”.",
          advice: all.isEmpty ? "It has no profiles." : "Use one of: \(all).")
      }
      let names = Set(profile.map(\.name))
      result.removeAll { names.contains($0.name) }
      result += profile
    }
    return result
  }

  var secretNames: [String] {
    (variables + profiles.values.flatMap(\.self)).compactMap { variable in
      if case .secret(let name, _) = variable.source { name } else { nil }
    }
  }

  // MARK: What is allowed

  /// Everything that the file declares, a line each, sorted. Two files with the same lines mean the same.
  var declarations: [String] {
    var lines: [String] = []
    if let vault = vaultPath ?? vault { lines.append("vault = \(Self.quoted(vault))") }
    if let service { lines.append("service = \(Self.quoted(service))") }
    if redacts { lines.append("run.redact = true") }
    lines += variables.map { "variables.\(Self.line($0))" }
    for (name, variables) in profiles {
      if variables.isEmpty { lines.append("profiles.\(name)") }
      lines += variables.map { "profiles.\(name).variables.\(Self.line($0))" }
    }
    return lines.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }

  var digest: String { Self.digest(of: declarations) }

  /// The BLAKE2b-256 hash of declarations in lower-case hexadecimal.
  static func digest(of declarations: [String]) -> String {
    let text = Array(declarations.map { $0 + "\n" }.joined().utf8)
    return BLAKE2b.hash(text.span, count: 32).map(\.hexadecimal).joined().lowercased()
  }

  private static func line(_ variable: Variable) -> String {
    switch variable.source {
    case .secret(let name, let isOptional):
      "\(variable.name) = \(quoted(name))" + (isOptional ? " (optional)" : "")
    case .plain(let text): "\(variable.name) = value \(quoted(text))"
    }
  }

  /// The text on one line, written so that no two texts look the same.
  static func quoted(_ text: String) -> String {
    "\"\(text.escaped { $0 == "\\" || $0 == "\"" ? "\\\($0)" : nil }.printable)\""
  }
}

extension TOMLTable.Entry {
  /// The name of a secret, or a reference.
  fileprivate func secret() throws(LineProblem) -> String {
    let text = try text()
    do { _ = try SecretReference.identifier(text) } catch {
      throw problem("has a reference that is not valid for “\(name)”")
    }
    return text
  }
}
