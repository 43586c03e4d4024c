internal import Coffer
internal import Glibc

/// Where the value of `set` comes from: a file, a pipe, or a person. Never an argument.
///
/// The rules: a file and `--verbatim` are exact. From a pipe, one final LF is dropped if it is the only LF, so
/// that `echo` does what was meant and PEM and JSON survive. On a terminal, the value is asked for twice.
struct ValueInput {
  /// A file's path, or `-` for standard input.
  var file: String?
  var verbatim = false

  var asksPerson: Bool { file == nil && isatty(STDIN_FILENO) == 1 }

  func read(for name: String) throws -> SecretBytes {
    if let file { return try Self.read(file: file) }
    guard asksPerson else {
      let bytes = try Self.readAll(STDIN_FILENO, named: "standard input")
      return verbatim ? bytes : Self.droppingOnlyLineFeed(bytes)
    }
    guard CofferConfiguration.current().mayPrompt, Terminal.isThere else {
      throw Failure.usage(
        "There is no value: standard input is a terminal, and nobody may be asked. Use a pipe or --from-file."
      )
    }
    return try Self.ask(for: name)
  }

  private static func ask(for name: String) throws -> SecretBytes {
    let terminal = try Terminal()
    let first = try terminal.readHidden("Value of \(name): ")
    if first.isEmpty {
      throw Failure(
        .refused,
        "Nothing was entered, and nothing was stored. For an empty value: printf '' | secret set NAME"
      )
    }
    let second = try terminal.readHidden("The same again: ")
    guard first.isEqual(to: second) else {
      throw Failure.usage("The two entries differ, and nothing was stored. Try again.")
    }
    return first
  }

  static func droppingOnlyLineFeed(_ secret: consuming SecretBytes) -> SecretBytes {
    let count = secret.withBytes { bytes in
      let lineFeed = UInt8(ascii: "\n")
      for index in bytes.indices where bytes[index] == lineFeed {
        return index == bytes.count - 1 ? index : bytes.count
      }
      return bytes.count
    }
    return count == secret.count
      ? secret : secret.withBytes { SecretBytes(copying: $0.extracting(0..<count)) }
  }

  /// The bytes of a file, exactly. Throws ``ExitStatus/noInput`` where there is none.
  static func read(file path: String) throws -> SecretBytes {
    if path == "-" { return try readAll(STDIN_FILENO, named: "standard input") }
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)
    if descriptor < 0 {
      let code = errno
      if code == ENOENT || code == ENOTDIR {
        throw Failure(.noInput, "There is no file \(path). Check the path.")
      }
      throw SecretError(
        code == EACCES ? .denied : .io,
        "The file \(path) cannot be opened: \(systemMessage(code))."
      )
    }
    defer { close(descriptor) }
    return try readAll(descriptor, named: path)
  }

  /// Reads to the end, only ever into guarded memory. Throws `.tooLarge` above the largest value.
  static func readAll(_ descriptor: Int32, named name: String) throws(SecretError) -> SecretBytes {
    let limit = VaultBackend.maximumSecretSize
    var held = SecretBytes(copying: [])
    var count = 0
    var ended = false
    while !ended {
      let capacity = min(max(4096, count * 4), limit + 1)
      held = try SecretBytes(count: capacity) { block throws(SecretError) in
        held.withBytes { bytes in
          bytes.withUnsafeBytes { block.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
        }
        while count < capacity {
          let room = UnsafeMutableRawBufferPointer(rebasing: block[count...])
          let got = Glibc.read(descriptor, room.baseAddress, room.count)
          if got > 0 {
            count += got
          } else if got == 0 {
            ended = true
            return
          } else if errno == EAGAIN {
            var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            poll(&ready, 1, -1)
          } else if errno != EINTR {
            throw SecretError(.io, "Could not read \(name): \(systemMessage(errno)).")
          }
        }
      }
      if count > limit {
        throw SecretError(
          .tooLarge,
          "The value is longer than \(limit) bytes, the most that a store takes.",
          advice: "Keep large data in a file, and its key here."
        )
      }
    }
    return held.withBytes { SecretBytes(copying: $0.extracting(0..<count)) }
  }
}
