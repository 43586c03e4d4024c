internal import ArgumentParser

extension CommandConfiguration {
  /// The configuration of the subcommand `name` of `parent`. The usage text shows both names.
  init(
    _ name: String, of parent: String = "secret", abstract: String, discussion: String = "",
    shouldDisplay: Bool = true, subcommands: [any ParsableCommand.Type] = []
  ) {
    self.init(
      commandName: name, _superCommandName: parent, abstract: abstract, discussion: discussion,
      shouldDisplay: shouldDisplay, subcommands: subcommands)
  }
}
