internal import ArgumentParser

extension ExpressibleByArgument where Self: CaseIterable & RawRepresentable<String> {
  // The parser's own implementations use key paths and generic code, which cost much at their first use.
  static var allValueStrings: [String] { allCases.map { $0.rawValue } }
  static var allValueDescriptions: [String: String] { [:] }
}

extension Option {
  /// An option whose value is the path of a file.
  init(name: NameSpecification = .long, path help: String) where Value == String? {
    self.init(name: name, help: ArgumentHelp(help, valueName: "path"), completion: .file())
  }

  /// An option that can be repeated, whose value is the path of a file.
  init(wrappedValue: [String], path help: String) where Value == [String] {
    self.init(wrappedValue: wrappedValue, help: ArgumentHelp(help, valueName: "path"), completion: .file())
  }

  /// An option that can be repeated, whose value is VAR=NAME.
  init(wrappedValue: [String], name: NameSpecification, assignment help: String) where Value == [String] {
    self.init(
      wrappedValue: wrappedValue, name: name, help: ArgumentHelp(help, valueName: "var=name"),
      completion: CompletedValue.assignment.kind)
  }
}
