internal import Coffer
internal import CofferSystem

/// The work tree of a git repository.
enum WorkTree {
  /// Whether `path`, which is absolute, is in one: a directory above it has an entry `.git`.
  static func contains(_ path: String) throws(SecretError) -> Bool {
    var directory = path
    while directory != "/" {
      directory = Path.parent(of: directory)
      if try Path.exists("\(directory)/.git") { return true }
    }
    return false
  }
}
