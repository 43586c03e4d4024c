internal import Synchronization

/// The arguments after `--` of a command that takes names: each is a name as it is, even if it looks like a reference.
enum VerbatimNames {
  private static let names = Mutex<ArraySlice<String>>([])

  static func are(_ arguments: ArraySlice<String>) { names.withLock { $0 = arguments } }
  static func contain(_ name: String) -> Bool { names.withLock { $0.contains(name) } }
}
