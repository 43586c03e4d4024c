/// A process's environment, which is full of secrets: nothing prints it.
final class RedactedEnvironment: Sendable, CustomStringConvertible, CustomReflectable {
  private let variables: [String: String]

  init(_ variables: [String: String]) { self.variables = variables }

  /// The variable's value, or `nil` where it is unset. An empty one is empty.
  subscript(name: String) -> String? { variables[name] }

  /// The variable's value, or `nil` where it is unset or empty.
  func nonEmpty(_ name: String) -> String? {
    guard let value = variables[name], !value.isEmpty else { return nil }
    return value
  }

  func without(_ names: [String]) -> [String: String] {
    variables.filter { !names.contains($0.key) }
  }

  var description: String { "\(variables.count) variables" }
  var customMirror: Mirror { Mirror(self, children: []) }
}
