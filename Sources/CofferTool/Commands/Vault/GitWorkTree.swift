internal import Coffer
internal import CofferSystem
internal import Glibc

/// What git says of a file in a work tree of its own.
enum GitWorkTree {
  /// Throws a failure if the key file is in a work tree, and git does not ignore it or cannot be asked: a commit may publish
  /// it. `advice` is the end of the message.
  static func requireIgnored(
    _ path: String, _ configuration: CofferConfiguration, advice: String = "or add it to .gitignore."
  ) throws(Failure) {
    let place = place(of: path)
    guard configuration.isInWorkTree(place.directory + "/name"), !agrees(["check-ignore", "-q"], place) else {
      return
    }
    throw Failure(
      .refused,
      """
      The key file \(path) is in a git work tree, and git does not say that it is ignored: a commit could publish it. \
      Nothing was created. Choose another place, \(advice)
      """)
  }

  /// Whether git keeps versions of the file.
  static func tracks(_ path: String, _ configuration: CofferConfiguration) -> Bool {
    let place = place(of: path)
    return configuration.isInWorkTree(place.directory + "/name")
      && agrees(["ls-files", "--error-unmatch"], place)
  }

  /// Whether git has found changes of both sides of a merge in the file, and waits for a decision.
  static func isUnmerged(_ path: String, _ configuration: CofferConfiguration) -> Bool {
    let place = place(of: path)
    return configuration.isInWorkTree(path) && agrees(["ls-files", "--unmerged", "--error-unmatch"], place)
  }

  /// The nearest directory that exists, and the path of the file from there. Links are resolved.
  private static func place(of path: String) -> (directory: String, rest: String) {
    var path = path
    if let real = realpath(path, nil) {
      path = String(cString: real)
      free(real)
    }
    var directory = Path.parent(of: path)
    while FileStatus(of: directory) == nil { directory = Path.parent(of: directory) }
    let rest = path.utf8.dropFirst(directory == "/" ? 1 : directory.utf8.count + 1)
    return (directory, String(decoding: rest, as: UTF8.self))
  }

  /// Whether git ends with the status 0 for the file. Git gets no variable that selects another repository. Root's git does
  /// not read the settings of another user.
  ///
  /// The repository may be hostile, so that its settings must not start a program: git runs no monitor and no hook, fetches
  /// no missing object, and no protocol is allowed to it.
  private static func agrees(_ arguments: [String], _ place: (directory: String, rest: String)) -> Bool {
    var environment: [String: String] = [:]
    environment["PATH"] = Environment.value("PATH")
    (environment["GIT_ALLOW_PROTOCOL"], environment["GIT_NO_LAZY_FETCH"]) = ("none", "1")
    environment["HOME"] = BaseDirectories(environment: Environment.value).home
    do throws(SecretError) {
      let git = try CapturedProcess.run(
        [
          "git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c",
          "safe.bareRepository=explicit", "-C", place.directory,
        ] + arguments + ["--", "./" + place.rest],
        named: "git", environment: environment, standardError: .captured, limit: 1 << 16,
        timeout: .seconds(10))
      return git.end == .status(0)
    } catch { return false }
  }
}
