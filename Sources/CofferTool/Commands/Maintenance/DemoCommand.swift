internal import ArgumentParser
internal import Coffer
internal import Glibc

struct DemoCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "demo",
    abstract: "Take a guided tour on a throwaway vault.",
    discussion: """
      Every step is really run, in a private directory that is removed afterwards. Nothing of yours is read or \
      changed. The exit status is 0 only if every step did what it says.
      """
  )

  func run() throws {
    let signals = try BlockedSignals([SIGINT, SIGTERM, SIGHUP, SIGQUIT])
    let stage = try DemoStage()
    do {
      for step in DemoStep.tour {
        try stage.perform(step)
        // Also where the step went well: a shell may have taken the signal for itself.
        if let signal = try signals.come() {
          try stage.clear()
          signals.deliver(signal)
          throw Failure(.internalError, "The tour was interrupted.")
        }
      }
    } catch {
      let interruption = try signals.come()
      try stage.clear()
      if let interruption { signals.deliver(interruption) }
      throw error
    }
    try stage.clear()
    try Output.standard.line("The throwaway vault is gone. Your own begins with: secret init")
  }
}

/// One step of the tour: what it shows, the command, and how one sees that it did.
struct DemoStep {
  let title: String
  let command: String
  var status: Int32 = 0
  /// What the output must have in it.
  let shows: String

  static let tour = [
    DemoStep(
      title: "A vault is one encrypted file. This makes one, and a key file to open it with.",
      command: "secret init",
      shows: "Made the vault"
    ),
    DemoStep(
      title: "A value comes from a prompt, a pipe or a file; never from an argument.",
      command: "printf 'hunter2' | secret set github-token --label 'GitHub, read only'",
      shows: ""
    ),
    DemoStep(title: "It comes back byte for byte.", command: "secret get github-token", shows: "hunter2"),
    DemoStep(
      title: "Names can be listed. Values are not shown.",
      command: "secret list",
      shows: "github-token"
    ),
    DemoStep(
      title: "What is known beside the value.",
      command: "secret info github-token",
      shows: "GitHub, read only"
    ),
    DemoStep(
      title: "A command gets secrets in its environment, and the vault's own key is kept from it.",
      command: #"secret run --set TOKEN=github-token -- sh -c 'echo "TOKEN has ${#TOKEN} characters"'"#,
      shows: "TOKEN has 7 characters"
    ),
    DemoStep(
      title: "What the command prints can be masked.",
      command: #"secret run --redact --set TOKEN=github-token -- sh -c 'echo "Bearer $TOKEN"'"#,
      shows: "Bearer [TOKEN]"
    ),
    DemoStep(
      title: "A reference in a template stands for the value.",
      command: "echo 'token = secret://secret/github-token' | secret inject",
      shows: "token = hunter2"
    ),
    DemoStep(
      title: "Nothing of it can be read in the file.",
      command: #"grep -c -e hunter2 -e github-token "$XDG_DATA_HOME/coffer/default.vault""#,
      status: 1,
      shows: "0"
    ),
    DemoStep(
      title: "A missing secret is an error of its own, with exit status 1.",
      command: "secret get github-tokne",
      status: 1,
      shows: "Did you mean “github-token”?"
    ),
    DemoStep(
      title: "Every byte can be checked.",
      command: "secret verify",
      shows: "is whole"
    ),
    DemoStep(
      title:
        "Now a few bytes of a copy are overwritten. That is noticed, and nothing is guessed: exit status 65.",
      command: """
        cp "$XDG_DATA_HOME/coffer/default.vault" copy.vault
        printf 'XXXXXXXX' | dd of=copy.vault bs=1 seek=12400 conv=notrunc status=none
        secret --vault copy.vault get github-token
        """,
      status: 65,
      shows: "secret: "
    ),
    DemoStep(title: "Removed is removed.", command: "secret remove github-token", shows: ""),
    DemoStep(
      title: "There is nothing left.",
      command: "secret get github-token",
      status: 1,
      shows: "There is no secret"
    ),
  ]
}

/// The private directory that the tour takes place in, and its environment.
struct DemoStage {
  private let directory: String
  private let environment: [String: String]

  init() throws(SecretError) {
    var template = Array("\(Environment.value("TMPDIR") ?? "/tmp")/secret-demo-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else {
      throw SecretError(.io, "No temporary directory can be made: \(systemMessage(errno)).")
    }
    directory = template.withUnsafeBufferPointer { buffer in
      buffer.baseAddress.map { String(cString: $0) } ?? ""
    }
    // `secret` must be this very program, whatever PATH says.
    guard symlink(try Self.executable(), "\(directory)/secret") == 0, chdir(directory) == 0 else {
      throw SecretError(.io, "The temporary directory cannot be written to: \(systemMessage(errno)).")
    }
    environment = [
      "PATH": "\(directory):\(Environment.value("PATH") ?? "/usr/bin:/bin")",
      "HOME": directory,
      "XDG_DATA_HOME": "\(directory)/data",
      "XDG_CONFIG_HOME": "\(directory)/config",
      "XDG_STATE_HOME": "\(directory)/state",
      "COFFER_NO_PROMPT": "1",
    ]
  }

  private static func executable() throws(SecretError) -> String {
    guard let path = realpath("/proc/self/exe", nil) else {
      throw SecretError(.io, "This program cannot find its own file: \(systemMessage(errno)).")
    }
    defer { free(path) }
    return String(cString: path)
  }

  /// Prints the step, runs it, prints its output, and throws where that is not what was promised.
  func perform(_ step: DemoStep) throws {
    let output = Output.standard
    try output.line("# \(step.title)")
    for line in step.command.split(separator: "\n") { try output.line("$ \(line)") }
    let result = try CapturedProcess.run(
      ["/bin/sh", "-c", step.command],
      environment: environment
    )
    let shown = try result.output.string()
    for line in shown.split(separator: "\n") { try output.line(String(line)) }
    try output.write("\n")
    if result.status != step.status {
      throw Failure(
        .internalError,
        "This step ended with status \(result.status) and should have with \(step.status)."
      )
    }
    if !shown.utf8.contains(step.shows.utf8) {
      throw Failure(.internalError, "This step did not show what it should: \(step.shows)")
    }
  }

  /// Removes the directory and everything in it.
  func clear() throws(SecretError) {
    _ = chdir("/")
    let result = try CapturedProcess.run(["rm", "-rf", "--", directory], environment: environment)
    if result.status != 0 {
      throw SecretError(
        .io,
        "The directory \(directory) could not be removed.",
        advice: "Remove it: there is nothing of yours in it."
      )
    }
  }
}
