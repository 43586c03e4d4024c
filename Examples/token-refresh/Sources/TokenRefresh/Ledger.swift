import Foundation

/// A file in which the pretended servers write down what they are asked, one line for each event. Several processes
/// write to it at the same time.
struct Ledger: Sendable {
  /// One line: `EVENT NUMBER PROCESS`.
  struct Event: Equatable {
    enum Kind: String {
      /// The login service was given a refresh token.
      case given
      /// The login service has answered with the next token.
      case answered
      /// The API has accepted an access token.
      case accepted
      /// A test kills the process. The number is 0.
      case killed
    }

    var kind: Kind
    /// The number of the token.
    var number: Int
    var process: Int32
  }

  let path: String

  func append(_ kind: Event.Kind, _ number: Int = 0, process: Int32 = getpid()) throws {
    try appendLine("\(kind.rawValue) \(number) \(process)", to: path)
  }

  func events() throws -> [Event] {
    guard FileManager.default.fileExists(atPath: path) else { return [] }
    return try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").map { line in
      let words = line.split(separator: " ")
      guard words.count == 3, let kind = Event.Kind(rawValue: String(words[0])), let number = Int(words[1]),
        let process = Int32(words[2])
      else { throw Failure("The ledger has the line: \(line)") }
      return Event(kind: kind, number: number, process: process)
    }
  }

  /// Runs `body` while no other process runs this method.
  func withLock<R>(_ body: () throws -> R) throws -> R {
    let lock = open(path + ".lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard lock >= 0 else { throw Failure("\(path).lock cannot be opened: error \(errno).") }
    defer { close(lock) }
    guard flock(lock, LOCK_EX) == 0 else { throw Failure("\(path).lock cannot be locked: error \(errno).") }
    return try body()
  }
}

/// Appends a line with one write, so that the lines of several processes do not mix and no line is written in part.
func appendLine(_ line: String, to path: String) throws {
  let file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
  guard file >= 0 else { throw Failure("\(path) cannot be opened: error \(errno).") }
  defer { close(file) }
  let bytes = Array("\(line)\n".utf8)
  guard write(file, bytes, bytes.count) == bytes.count else {
    throw Failure("\(path) cannot be written: error \(errno).")
  }
}

struct Failure: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}
