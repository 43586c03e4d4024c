internal import CLinux
internal import Coffer
internal import CofferLibc

/// The environment of a command, in guarded memory: `NAME=value` and a NUL for each variable.
struct CommandEnvironment: ~Copyable {
  let bytes: SecretBytes

  init(_ bytes: SecretBytes) { self.bytes = bytes }

  /// The variables of this process that `isKept` selects by name, and `entries`, whose values have no NUL.
  init(inheriting isKept: (String) -> Bool, adding entries: [(variable: String, value: SecretBytes)]) {
    let all = coffer_environment().map { ProgramFile.Vector($0).strings } ?? []
    let inherited = all.filter { entry in
      let name = UnsafeRawBufferPointer(start: entry, count: strcspn(entry, "="))
      return isKept(String(decoding: name, as: UTF8.self))
    }
    bytes = SecretWriter.bytes { writer in
      for entry in inherited {
        writer.append(Span(_unsafeBytes: UnsafeRawBufferPointer(start: entry, count: strlen(entry) + 1)))
      }
      for entry in entries {
        writer.append(entry.variable + "=")
        writer.append(entry.value)
        writer.append(0)
      }
    }
  }

  /// The values of those `variables` that are set.
  borrowing func values(of variables: Set<String>) -> [String: SecretBytes] {
    withVector { vector in
      var values: [String: SecretBytes] = [:]
      for entry in vector.strings {
        let count = strcspn(entry, "=")
        let name = String(decoding: UnsafeRawBufferPointer(start: entry, count: count), as: UTF8.self)
        guard variables.contains(name), values[name] == nil, strlen(entry) > count else { continue }
        let value = UnsafeRawBufferPointer(start: entry + count + 1, count: strlen(entry) - count - 1)
        values[name] = SecretBytes(Span(_unsafeBytes: value))
      }
      return values
    }
  }

  /// Calls `body` with pointers to the variables, `nil` at the end.
  ///
  /// If `GPG_TTY` is set, a command on `terminal` gets the name of that terminal in it: the shell set it to its own
  /// terminal, from which another program would read keys.
  borrowing func withVector<R: ~Copyable, E: Error>(
    onTerminal terminal: Int32? = nil, _ body: (ProgramFile.Vector) throws(E) -> R
  ) throws(E) -> R {
    let variable = "GPG_TTY="
    let replacement = terminal.flatMap { ttyname($0) }.flatMap { strdup(variable + String(cString: $0)) }
    defer { free(replacement) }
    return try bytes.withBytes { bytes throws(E) in
      try bytes.withUnsafeBytes { bytes throws(E) in
        var vector: [UnsafeMutablePointer<CChar>?] = []
        var rest = bytes[...]
        while !rest.isEmpty {
          let start = UnsafeMutableRawBufferPointer(mutating: UnsafeRawBufferPointer(rebasing: rest))
          let isReplaced = replacement != nil && start.starts(with: variable.utf8)
          vector.append(isReplaced ? replacement : start.baseAddress?.assumingMemoryBound(to: CChar.self))
          rest = rest.drop { $0 != 0 }.dropFirst()
        }
        return try body(vector + [nil])
      }
    }
  }
}
