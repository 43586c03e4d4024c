/// The environment of a process. It may contain secrets, so its description and its mirror are empty.
final class RedactedEnvironment: Sendable, CustomStringConvertible, CustomReflectable {
  private let variables: [String: String]

  init(_ variables: [String: String]) { self.variables = variables }

  subscript(name: String) -> String? { variables[name] }

  func nonEmpty(_ name: String) -> String? { variables[name].flatMap { $0.isEmpty ? nil : $0 } }

  func without(_ names: [String]) -> [String: String] { variables.filter { !names.contains($0.key) } }

  var description: String { "\(variables.count) variables" }
  var customMirror: Mirror { Mirror(self, children: []) }
}
