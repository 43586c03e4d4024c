internal import Coffer

/// A variable of a command's environment, and the secret that it gets.
struct EnvironmentAssignment {
  let variable: String
  let identifier: SecretIdentifier
  /// Whether the variable gets the path of a file with the value.
  private(set) var isFile = false
}

extension EnvironmentAssignment {
  /// Parses the argument of `--set` or `--file`, which has the form `VAR=NAME`. `identifier` parses NAME.
  init(_ text: String, isFile: Bool = false, _ identifier: (String) throws -> SecretIdentifier) throws {
    self.isFile = isFile
    guard let equals = text.utf8.firstIndex(of: UInt8(ascii: "=")) else {
      throw Failure.usage("“\(text)” has no equals sign. Write \(isFile ? "--file" : "--set") VAR=NAME.")
    }
    variable = String(text[..<equals])
    let name = String(text[text.utf8.index(after: equals)...])
    guard Self.isVariableName(variable) else {
      throw Failure.usage(
        "“\(variable)” is not a valid variable name. Use letters, digits and underscores, and no digit first."
      )
    }
    self.identifier = try identifier(name)
  }

  /// Derives the variable's name from the secret's name: `prefix`, and then the name in upper case, with an underscore
  /// in place of each character that a variable's name cannot contain.
  init(for identifier: SecretIdentifier, prefix: String = "") throws(Failure) {
    self.identifier = identifier
    let name = identifier.account.unicodeScalars.map {
      UInt8(ascii: $0.isASCII && UInt8(ascii: $0).isASCIILetterOrDigit ? $0 : "_")
    }
    variable = prefix + String(decoding: name, as: UTF8.self).uppercased()
    guard Self.isVariableName(variable) else {
      throw .usage(
        """
        The secret “\(identifier.account)” has a name that cannot be converted to an environment variable name. \
        Use --set VAR=NAME.
        """)
    }
  }

  static func isVariableName(_ text: String) -> Bool {
    guard let first = text.utf8.first, !first.isASCIIDigit else { return false }
    return text.utf8.allSatisfy { $0.isASCIILetterOrDigit || $0 == UInt8(ascii: "_") }
  }

  static func checkDistinct(_ assignments: [EnvironmentAssignment]) throws(Failure) {
    var seen: [String: SecretIdentifier] = [:]
    for assignment in assignments {
      if let other = seen.updateValue(assignment.identifier, forKey: assignment.variable) {
        throw .usage(
          """
          Both “\(other.account)” and “\(assignment.identifier.account)” would be assigned to the variable \
          \(assignment.variable). Choose one with --set.
          """)
      }
    }
  }
}
