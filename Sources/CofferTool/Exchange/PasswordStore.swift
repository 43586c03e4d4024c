internal import CLinux
internal import Coffer
internal import CofferSystem
internal import FoundationEssentials
internal import CofferLibc

/// The password store of `pass`: a directory tree of files encrypted by gpg, whose paths are the names.
struct PasswordStore {
  private static let suffix = ".gpg"
  private let directory: String
  private let environment: [String: String]
  private let command: [String]

  /// Uses `path`, or else the directory that `pass` uses.
  init(_ path: String?) throws(Failure) {
    let home = BaseDirectories(environment: Environment.value).home
    let given = path ?? Environment.value("PASSWORD_STORE_DIR")
    guard let directory = given ?? home.map({ $0 + "/.password-store" }) else {
      throw Failure(
        .configuration,
        "There is no home directory, so ~/.password-store does not exist. Give the directory of the password store.")
    }
    self.directory = directory
    // The variables that open a vault have been removed: see Environment.
    var environment = ProcessInfo.processInfo.environment
    // gpg creates files there.
    environment["HOME"] = home
    // Tells the agent which terminal to prompt on, as `pass` does.
    if environment["GPG_TTY"] == nil, let terminal = ttyname(STDIN_FILENO) ?? ttyname(STDERR_FILENO) {
      environment["GPG_TTY"] = String(cString: terminal)
    }
    self.environment = environment
    let silent = BackendConfiguration.current().mayPrompt ? [] : ["--pinentry-mode=error"]
    command = ["gpg", "--quiet", "--batch"] + silent + ["--decrypt", "--"]
  }

  /// The names of all entries, sorted within each directory.
  func names() throws(Failure) -> [String] {
    let names = try names(below: "", ancestors: [])
    if names.isEmpty {
      throw Failure(
        .noInput, "\(directory) is not a password store of pass: it has no *\(Self.suffix) files. Check the path.")
    }
    return names
  }

  /// The names in the subdirectory `prefix`, which is empty or ends in a slash. Follows links, as `pass` does.
  private func names(below prefix: String, ancestors: [(dev_t, ino_t)]) throws(Failure) -> [String] {
    let path = prefix.isEmpty ? directory : "\(directory)/\(prefix.dropLast())"
    var status = stat()
    guard stat(path, &status) == 0 else { throw Self.unreadable(path, errno) }
    let place = (status.st_dev, status.st_ino)
    if ancestors.contains(where: { $0 == place }) { throw Self.unreadable(path, ELOOP) }
    let entries: [String]
    do throws(FileSystemError) { entries = try Path.names(inDirectory: path) } catch {
      throw Self.unreadable(path, error.number)
    }
    var names: [String] = []
    for entry in entries.sorted() where entry != ".git" && entry != ".extensions" {
      if entry.unicodeScalars.contains("\u{FFFD}") {
        throw Failure(
          .usage,
          "The name of the file \(path)/\(entry) is not UTF-8, or has a U+FFFD.", advice: "Rename the file.")
      }
      guard stat("\(path)/\(entry)", &status) == 0 else { throw Self.unreadable("\(path)/\(entry)", errno) }
      if status.st_mode & S_IFMT == S_IFDIR {
        names += try self.names(below: "\(prefix)\(entry)/", ancestors: ancestors + [place])
      } else if status.st_mode & S_IFMT == S_IFREG, entry.hasSuffix(Self.suffix), entry != Self.suffix {
        names.append(prefix + entry.dropLast(Self.suffix.count))
      }
    }
    return names
  }

  func contents(of name: String) throws -> SecretBytes {
    let process: CapturedProcess
    do throws(SecretError) {
      process = try CapturedProcess.run(
        command + ["\(directory)/\(name)\(Self.suffix)"], named: "gpg", environment: environment,
        standardError: .inherited, limit: VaultBackend.maximumSecretSize)
    } catch {
      throw Failure(ExitStatus(error.code), error.description)
    }
    guard process.end == .status(0) else {
      throw Failure(.refused, "gpg could not decrypt “\(name)”. See its message.")
    }
    return process.output
  }

  private static func unreadable(_ path: String, _ code: Int32) -> Failure {
    switch code {
    case ENOENT, ENOTDIR: Failure(.noInput, "There is no file or directory \(path).")
    case EACCES: Failure(.refused, "\(path) cannot be read: permission denied.")
    case ELOOP:
      Failure(.inputOutput, "\(path) is a link that leads back to itself.", advice: "Remove the link.")
    default: Failure(.inputOutput, "\(path) cannot be read: \(FileSystemError(code)).")
    }
  }
}
