internal import ArgumentParser
internal import Coffer
internal import Glibc

struct EditCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "edit",
    abstract: "Change a secret's value with an editor.",
    discussion: """
      The editor is VISUAL, or EDITOR, or else vi, run by a shell. The value is in a file in memory meanwhile, not on \
      a disk, and the file is overwritten and removed afterwards. Where the value had no line feed at its end, the one \
      that editors add is dropped. If nothing was changed, or the editor fails, nothing is stored; if somebody else \
      has changed the secret meanwhile, nothing is stored either, and the edited text is kept where the message says.
      """
  )

  @OptionGroup(title: "Global options") var global: GlobalOptions

  @Argument(help: "The secret's name.")
  var name: String

  @Flag(help: "Use the directory for temporary files where there is no storage in memory.")
  var insecureStorage = false

  func run() throws {
    let identifier = try global.identifier(name)
    let store = try global.store()
    guard let value = try store.lookUp(identifier) else { throw MissingSecret.failure(identifier, in: store) }

    // From here to the end of the file nothing may end this process without a word.
    let signals = try BlockedSignals([SIGINT, SIGQUIT, SIGTERM, SIGHUP])
    let file = try EditingFile(value, isInsecureAllowed: insecureStorage)
    let edited: SecretBytes
    do {
      switch try Self.runEditor(on: file.path, mask: signals.previous) {
      case .status(0): break
      case .status(let status):
        throw Failure(.refused, "The editor ended with status \(status), and nothing was stored.")
      case .signal(let signal) where [SIGINT, SIGQUIT, SIGTERM, SIGHUP].contains(signal):
        file.wipe()
        throw ForegroundChild.end(as: .signal(signal))
      case .signal(let signal):
        throw Failure(.refused, "The editor was ended by signal \(signal), and nothing was stored.")
      }
      if let signal = try signals.come() {
        file.wipe()
        signals.deliver(signal)
        throw Failure(.refused, "The editing was interrupted, and nothing was stored.")
      }
      edited = try Self.droppingAddedLineFeed(try file.value(), original: value)
    } catch {
      file.wipe()
      throw error
    }
    if edited.isEqual(to: value) {
      file.wipe()
      return note("Nothing was changed.")
    }
    do throws(SecretError) {
      try Self.store(edited, over: value, identifier, in: store)
    } catch {
      throw Failure(
        ExitStatus(error.code),
        "\(error) The edited text is still in \(file.path): use it with --from-file, and remove \(file.directory)."
      )
    }
    file.wipe()
  }

  private static func store(
    _ edited: borrowing SecretBytes,
    over original: borrowing SecretBytes,
    _ identifier: SecretIdentifier,
    in store: any SecretBackend
  ) throws(SecretError) {
    let changed = SecretError(
      .conflict,
      "Somebody else has changed the secret “\(identifier.account)” meanwhile, and nothing was stored.",
      advice: "Look at it with secret get."
    )
    if let store = store as? any TransactionalSecretBackend {
      // A closure cannot hold what it was lent.
      let (edited, original) = (SharedSecret(edited.copy()), SharedSecret(original.copy()))
      try store.transaction { transaction throws(SecretError) in
        guard let now = try transaction.lookUp(identifier), now.isEqual(to: original.bytes) else {
          throw changed
        }
        try transaction.store(edited.bytes, for: identifier, metadata: nil)
      }
    } else {
      guard let now = try store.lookUp(identifier), now.isEqual(to: original) else { throw changed }
      try store.store(edited, for: identifier)
    }
  }

  /// Runs the editor in the environment that a command of `run` gets: without what opens the vault.
  private static func runEditor(on path: String, mask: sigset_t) throws -> ForegroundChild.End {
    let editor = Environment.value("VISUAL") ?? Environment.value("EDITOR") ?? "vi"
    for variable in CofferConfiguration.keyVariables { unsetenv(variable) }
    let arguments: [UnsafeMutablePointer<CChar>?] =
      (["/bin/sh", "-c", "\(editor) \"$@\"", "sh", path] as [String]).map { strdup($0) } + [nil]
    defer { arguments.forEach { free($0) } }
    var vector = arguments
    return try vector.withUnsafeMutableBufferPointer { buffer in
      guard let start = buffer.baseAddress else { throw Failure(.internalError, "There is no editor.") }
      return try ForegroundChild(start, mask: mask).wait()
    }
  }

  private static func droppingAddedLineFeed(
    _ edited: consuming SecretBytes,
    original: borrowing SecretBytes
  ) throws -> SecretBytes {
    guard edited.endsWithLineFeed, !original.endsWithLineFeed else { return edited }
    return edited.withBytes { SecretBytes(copying: $0.extracting(0..<($0.count - 1))) }
  }
}
