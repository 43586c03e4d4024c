internal import ArgumentParser
internal import Coffer

/// The formats that `export` writes: `json` for `import`, and the others for programs that set variables.
///
/// `docker` is a file for `docker run --env-file`. Source: the documentation of the package kvfile of Docker's command
/// line. `github` is a file of GITHUB_ENV. Source: "Workflow commands for GitHub Actions" in GitHub's documentation.
enum ExportFormat: String, CaseIterable, ExpressibleByArgument {
  case shell, fish, dotenv, docker, github, json

  /// Prints the command `false` for a failed `export` whose output a shell evaluates:
  /// `eval "$(secret export …)" || exit`.
  static func printFalse(_ arguments: [String]) {
    guard arguments.first == "export" else { return }
    let given = zip(arguments, arguments.dropFirst()).filter { $0.0 == "--format" }.map { $0.1 }
    let joined = arguments.compactMap { $0.hasPrefix("--format=") ? String($0.dropFirst(9)) : nil }
    guard (given + joined).contains(where: { [Self.shell.rawValue, Self.fish.rawValue].contains($0) }) else { return }
    do throws(SecretError) { try Output.standard.write("false\n") } catch {}
  }

  /// The text for the secrets. Throws a failure for a secret that the format cannot hold.
  func text(of secrets: [ExchangedSecret]) throws -> SecretBytes {
    if self == .json { return try ExchangeFile.text(of: secrets) }
    let assignments = try secrets.map { secret in
      try secret.variable.map { EnvironmentAssignment(variable: $0, identifier: secret.identifier) }
        ?? EnvironmentAssignment(for: secret.identifier)
    }
    try EnvironmentAssignment.checkDistinct(assignments)
    // No value contains the delimiter, which is random and newer than the values.
    let delimiter = "ghadelimiter_\(UInt128.random(in: .min ... .max))"
    let obstacles = zip(assignments, secrets).compactMap { assignment, secret in
      obstacle(to: secret.value, in: assignment.variable).map {
        "The secret “\(secret.identifier.account)” contains \($0)"
      }
    }
    if !obstacles.isEmpty {
      let way =
        switch self {
        case .docker: "pass it with secret run --set VAR=NAME -- docker run --env VAR"
        case .dotenv: "use --format json, --format docker or secret run"
        default: "use json"
        }
      throw Failure.usage(
        "\(obstacles.joined(separator: ". ")), which the format \(rawValue) cannot hold. Leave it out with --except, or \(way)."
      )
    }
    let parts = zip(assignments, secrets).flatMap { assignment, secret in
      let name = assignment.variable
      let (before, after) =
        switch self {
        case .shell: ("export \(name)=", "\n")
        case .fish: ("set -gx \(name) ", "\n")
        // The first line feed ends a line that another program has not ended. The runner skips empty lines.
        case .github: ("\n\(name)<<\(delimiter)\n", "\n\(delimiter)\n")
        case .dotenv, .docker, .json: ("\(name)=", "\n")
        }
      return [SecretBytes(before), written(secret.value), SecretBytes(after)]
    }
    return SecretWriter.joined(parts)
  }

  /// The value as the format writes it. The value must have no obstacle.
  private func written(_ value: SecretBytes) -> SecretBytes {
    switch self {
    case .shell: TemplateFilter.shell.applied(to: value) ?? value
    case .fish:
      value.withBytes { bytes in
        TemplateFilter.escaped(bytes, in: "'") {
          "\\'".utf8.contains($0) ? "\\" + String(Unicode.Scalar($0)) : nil
        }
      }
    case .dotenv: Dotenv.quoted(value)
    case .docker, .github, .json: value
    }
  }

  /// What the value contains that the format cannot hold in a variable called `name`, or `nil`.
  private func obstacle(to value: SecretBytes, in name: String) -> String? {
    value.withBytes { bytes in
      if self == .dotenv { return Dotenv.obstacle(to: bytes) }
      if bytes.contains(0) { return "a NUL" }
      guard self == .docker || self == .github else { return nil }
      if !bytes.isUTF8 { return "bytes that are not UTF-8" }
      if self == .github { return nil }
      // Docker drops a carriage return at the end of a line, and reads lines of up to 64 KiB with their ends.
      if "\n\r".utf8.contains(where: { bytes.contains($0) }) { return "a line end" }
      return name.utf8.count + bytes.count + 2 > 65_536 ? "more than 64 KiB" : nil
    }
  }

  /// The commands by which a step of GitHub Actions tells the runner what to mask in the log: each line of a value,
  /// because the runner masks within lines. A line of fewer than 8 bytes, such as a brace, is left out: it could occur
  /// anywhere in the log.
  static func masks(of value: SecretBytes) -> SecretBytes {
    value.withBytes { bytes in
      SecretWriter.bytes { writer in
        var start = 0
        for end in 0...bytes.count where end == bytes.count || "\n\r".utf8.contains(bytes[end]) {
          let line = start..<end
          start = end + 1
          if line.count < 8 { continue }
          writer.append("::add-mask::")
          writer.append(TemplateFilter.escaped(bytes.extracting(line)) { $0 == UInt8(ascii: "%") ? "%25" : nil })
          writer.append("\n")
        }
      }
    }
  }
}
