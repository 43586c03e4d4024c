internal import ArgumentParser
internal import Synchronization

/// The option `--quiet`, of the commands that use a backend.
struct QuietOption: ParsableArguments {
  @Flag(help: "Leave out the messages that only inform. Errors and warnings are printed.")
  var quiet = false

  private static let given = Atomic(false)

  /// Whether the option was given, for what prints messages.
  static var isGiven: Bool { given.load(ordering: .relaxed) }

  func validate() throws { if quiet { Self.given.store(true, ordering: .relaxed) } }
}
