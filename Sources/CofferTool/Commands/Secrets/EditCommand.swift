internal import ArgumentParser
internal import Coffer
internal import CofferSystem
internal import CofferLibc

struct EditCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "edit", abstract: "Change a secret's value in an editor, or create a secret.",
    discussion: """
      Runs the editor that VISUAL or EDITOR names, or else vi, through a shell. During editing, the value is in a file \
      in memory, not on a disk; the file is then overwritten and removed. vim, nvim, nano, micro, emacs and code --wait \
      are started without your configuration and with options that prevent copies of the text elsewhere: no backup, swap \
      or undo files, and no history. Before any other editor starts, a note says that it may keep copies.

      If the value did not end in a line feed, the line feed that editors append is dropped. A secret that does not exist \
      is created. Nothing is stored if the value is unchanged or the editor fails. If another process changes the secret \
      during editing, nothing is stored either, and the message names the file with the edited text.
      """)

  @OptionGroup(title: "Global options") var global: GlobalOptions

  @Argument(help: "The secret's name.", completion: CompletedValue.names.kind)
  var name: String

  @Flag(help: "Use the directory for temporary files if there is no file system in memory.")
  var insecureStorage = false

  func run() throws {
    let identifier = try global.identifier(name)
    let backend = try global.open(to: .change)
    let stored = try backend.lookUp(identifier)
    let isNew = stored == nil
    if isNew {
      inform("\(MissingSecret.failure(identifier, in: backend).message) The edited text will create it.")
    }
    let value = stored ?? SecretBytes("")

    // Blocked while the file exists, because a signal that ends this process would leave the file behind.
    let signals = try BlockedSignals(BlockedSignals.interruptions)
    let files = try ValueFiles(for: .edit, allowsDisk: insecureStorage)
    var isKept = false
    defer { if !isKept { files.wipe() } }
    let path = try files.add(value, named: "value", mode: 0o600)
    let edited = try Self.edit(path, in: files, original: value, signals)
    if !isNew && edited.isEqual(to: value) { return inform("Nothing was changed.") }
    if edited.isEmpty {
      throw try Failure.empty(
        "The edited text is empty", identifier, in: backend,
        advice: "To store an empty value: secret set --allow-empty")
    }
    if !value.endsWithCarriageReturn { edited.noteCarriageReturn() }
    do throws(SecretError) {
      try backend.withTransaction { transaction throws(SecretError) in
        let current = try transaction.lookUp(identifier)
        let isUnchanged = if let current { isNew ? false : current.isEqual(to: value) } else { isNew }
        guard isUnchanged else {
          throw SecretError(
            .conflict, "Another process changed the secret “\(name)” during editing.",
            advice: "Read the new value with secret get.")
        }
        try transaction.store(edited, for: identifier)
      }
    } catch {
      isKept = true
      throw Failure(
        ExitStatus(error.code), error.reason,
        advice: (error.advice.map { $0 + " " } ?? "")
          + "The edited text is in \(path): store it with --from-file, and then remove \(files.directory).",
        effect: error.effect)
    }
  }

  /// Runs the editor on the file, with its temporary files in the file's private directory, and returns the new
  /// contents. Wipes the file before a signal ends this process.
  private static func edit(
    _ path: String, in files: ValueFiles, original: SecretBytes, _ signals: borrowing BlockedSignals
  ) throws -> SecretBytes {
    let text = Environment.value("VISUAL") ?? Environment.value("EDITOR") ?? "vi"
    let editor = EditorCommand(text, directory: files.directory)
    if let text = editor.note { note(text) }
    setenv("TMPDIR", files.directory, 1)
    let end = try ForegroundChild.run(named: "sh", mask: signals.previous) { spawn throws(FileSystemError) in
      let arguments = ["sh"] + (editor.options ?? []) + [path]
      return try spawn.start(["/bin/sh", "-c", "\(editor.text) \"$@\""] + arguments)
    }
    switch end {
    case .status(0): break
    case .status(let status):
      throw Failure(.unavailable, "The editor exited with status \(status).")
    case .signal(let signal):
      if BlockedSignals.interruptions.contains(signal) {
        files.wipe()
        throw ForegroundChild.end(as: .signal(signal))
      }
      throw Failure(.unavailable, "Signal \(signal) ended the editor.")
    }
    var others: [pollfd] = []
    if let signal = try signals.wait(for: &others, until: .now)?.signal {
      files.wipe()
      BlockedSignals.deliver(signal)
      throw Failure(.refused, "Editing was interrupted.")
    }
    guard FileStatus(of: path, followingLink: false)?.isRegular == true else {
      throw Failure(.unavailable, "The editor left no regular file with the text.")
    }
    let edited = try ValueInput.read(file: path)
    return edited.endsWithLineFeed && !original.endsWithLineFeed ? edited.prefix(edited.count - 1) : edited
  }
}
