internal import Coffer
internal import Glibc

/// The store of `pass`: a tree of files that gpg decrypts, and whose paths are the names.
struct PasswordStore {
  private static let suffix = ".gpg"
  private let directory: String
  private let environment: [String: String]
  private let command: [String]

  /// `path`, or where `pass` itself looks.
  init(_ path: String?) throws(Failure) {
    if let given = path ?? Environment.value("PASSWORD_STORE_DIR") {
      directory = given
    } else if let home = Environment.value("HOME") {
      directory = home + "/.password-store"
    } else {
      throw Failure(
        .configuration, "HOME is not set, so there is no ~/.password-store. Name the store's directory.")
    }
    var environment = Environment.all
    // Where the agent asks for a passphrase on the terminal, as `pass` has it.
    if environment["GPG_TTY"] == nil, let terminal = ttyname(STDIN_FILENO) ?? ttyname(STDERR_FILENO) {
      environment["GPG_TTY"] = String(cString: terminal)
    }
    self.environment = environment
    let silent = CofferConfiguration.current().mayPrompt ? [] : ["--pinentry-mode=error"]
    command = ["gpg", "--quiet", "--batch"] + silent + ["--decrypt", "--"]
  }

  /// The names of all that is in it, in order.
  func names() throws(Failure) -> [String] {
    var names: [String] = []
    try collect(below: "", into: &names, ancestors: [])
    if names.isEmpty {
      throw Failure(
        .noInput, "\(directory) is no store of pass: there is no *\(Self.suffix) file in it. Check the path.")
    }
    return names
  }

  private struct Place: Equatable {
    let device: dev_t
    let number: ino_t
  }

  /// `prefix` is a directory in it with a slash behind it, or empty. Links are followed, as `pass` does.
  private func collect(
    below prefix: String,
    into names: inout [String],
    ancestors: [Place]
  ) throws(Failure) {
    let path = prefix.isEmpty ? directory : "\(directory)/\(prefix.dropLast())"
    var status = stat()
    guard stat(path, &status) == 0 else { throw Self.unreadable(path, errno) }
    let place = Place(device: status.st_dev, number: status.st_ino)
    if ancestors.contains(place) { throw Self.unreadable(path, ELOOP) }
    guard let entries = Directory.entries(path) else { throw Self.unreadable(path, errno) }
    for entry in entries.sorted() where entry != ".git" && entry != ".extensions" {
      guard stat("\(path)/\(entry)", &status) == 0 else { throw Self.unreadable("\(path)/\(entry)", errno) }
      if status.st_mode & S_IFMT == S_IFDIR {
        try collect(below: "\(prefix)\(entry)/", into: &names, ancestors: ancestors + [place])
      } else if status.st_mode & S_IFMT == S_IFREG, entry.hasSuffix(Self.suffix), entry != Self.suffix {
        names.append(prefix + entry.dropLast(Self.suffix.count))
      }
    }
  }

  /// What is behind a name, as it was encrypted.
  func contents(of name: String) throws -> SecretBytes {
    let result = try CapturedProcess.run(
      command + ["\(directory)/\(name)\(Self.suffix)"], environment: environment, messages: .passedOn)
    guard result.status == 0 else {
      throw Failure(.refused, "gpg did not decrypt “\(name)”, for the reason it gave. Nothing was imported.")
    }
    return result.output.copy()
  }

  private static func unreadable(_ path: String, _ code: Int32) -> Failure {
    switch code {
    case ENOENT, ENOTDIR: Failure(.noInput, "There is no directory or file \(path). Nothing was imported.")
    case EACCES: Failure(.refused, "\(path) may not be read. Nothing was imported.")
    case ELOOP:
      Failure(
        .inputOutput, "\(path) leads back to itself through a link. Nothing was imported; remove the link.")
    default: Failure(.inputOutput, "\(path) cannot be read: \(systemMessage(code)). Nothing was imported.")
    }
  }
}
