internal import Coffer
internal import CofferConfiguration
internal import CofferSystem

/// What git says of a file in a work tree of its own.
enum GitWorkTree {
  /// Whether the file is in a work tree, and git does not ignore it or cannot be asked: a commit may publish it.
  static func mayPublish(_ path: String, _ configuration: CofferConfiguration) -> Bool {
    isInside(path, configuration) && !agrees(["check-ignore", "-q"], path)
  }

  /// Whether git keeps versions of the file.
  static func tracks(_ path: String, _ configuration: CofferConfiguration) -> Bool {
    isInside(path, configuration) && agrees(["ls-files", "--error-unmatch"], path)
  }

  private static func isInside(_ path: String, _ configuration: CofferConfiguration) -> Bool {
    configuration.isInWorkTree(existingParent(of: path) + "/name")
  }

  private static func existingParent(of path: String) -> String {
    var directory = Path.parent(of: path)
    while FileStatus(of: directory) == nil { directory = Path.parent(of: directory) }
    return directory
  }

  /// Whether git ends with the status 0 for the file.
  private static func agrees(_ arguments: [String], _ path: String) -> Bool {
    do throws(SecretError) {
      let git = try CapturedProcess.run(
        ["git", "-C", existingParent(of: path)] + arguments + ["--", path], named: "git",
        environment: Environment.all, standardError: .captured, limit: 1 << 16, timeout: .seconds(10))
      return git.end == .status(0)
    } catch { return false }
  }
}
