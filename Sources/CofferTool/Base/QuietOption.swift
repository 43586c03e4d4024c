internal import ArgumentParser
internal import Synchronization

/// The option `--quiet`, of the commands that use a backend.
struct QuietOption: ParsableArguments {
  static let help: ArgumentHelp = "Leave out the messages that only inform. Errors and warnings are printed."

  @Flag(help: Self.help)
  var quiet = false

  private static let given = Atomic(false)

  static var isGiven: Bool { given.load(ordering: .relaxed) }

  static func apply(_ quiet: Bool) { if quiet { given.store(true, ordering: .relaxed) } }

  func validate() throws { Self.apply(quiet) }
}
