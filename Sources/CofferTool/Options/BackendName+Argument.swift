public import ArgumentParser
public import CofferConfiguration

extension BackendName: ExpressibleByArgument {
  /// The backend of that name, or `nil` if there is none.
  public init?(argument: String) {
    self.init(rawValue: argument)
    if !BackendRegistry.names.contains(self) { return nil }
  }

  /// The names of all backends.
  public static var allValueStrings: [String] { BackendRegistry.names.map(\.rawValue) }
}
