internal import CLinux
internal import CofferCore
internal import Glibc

/// A shell command that prints a passphrase.
struct PassphraseCommand {
  private static let name = "COFFER_PASSPHRASE_COMMAND"
  private let command: String

  init(_ command: String) { self.command = command }

  /// What the command wrote to its standard output, within `timeout` seconds; then it is killed, with what
  /// it started. Its standard input is empty, and its standard error is this process's.
  func run(environment: [String: String], timeout: Double) throws(SecretError) -> SecretBytes {
    if command.isEmpty {
      throw SecretError(
        .configuration,
        "\(Self.name) is set, and empty.",
        advice: "Give it a shell command, or unset it."
      )
    }
    let deadline = ContinuousClock.now + .milliseconds(Int64(timeout * 1000))
    var ends: [Int32] = [-1, -1]
    if coffer_pipe(&ends) != 0 { throw FileAccess.error(errno, "Making a pipe for", Self.name) }
    let (reading, writing) = (ends[0], ends[1])
    defer { close(reading) }
    let child: pid_t
    do throws(SecretError) {
      defer { close(writing) }
      child = try spawn(output: writing, environment: environment)
    } catch {
      throw error
    }
    let (text, status): (SharedSecret, Int32)
    do throws(SecretError) {
      text = SharedSecret(try SecretFile.read(reading, named: Self.name, until: deadline))
      status = try self.status(of: child, by: deadline)
    } catch {
      // The group: the shell's own children would keep running, and hold the pipe.
      kill(-child, SIGKILL)
      var status: Int32 = 0
      while waitpid(child, &status, 0) < 0 && errno == EINTR {}
      throw error
    }
    if status != 0 {
      let how =
        status & 0x7F == 0 ? "with the status \((status >> 8) & 0xFF)" : "by the signal \(status & 0x7F)"
      throw SecretError(
        .configuration,
        "The command in \(Self.name) ended \(how).",
        advice: "Run it by hand to see why."
      )
    }
    return text.bytes.copy()
  }

  private func spawn(output: Int32, environment: [String: String]) throws(SecretError) -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_adddup2(&actions, output, 1)

    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // The signals as a fresh program has them, whatever this process blocks and ignores.
    var (none, all) = (sigset_t(), sigset_t())
    sigemptyset(&none)
    sigfillset(&all)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setsigdefault(&attributes, &all)
    posix_spawnattr_setpgroup(&attributes, 0)
    posix_spawnattr_setflags(
      &attributes,
      Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF)
    )

    let arguments: [UnsafeMutablePointer<CChar>?] =
      (["sh", "-c", command] as [String]).map { strdup($0) } + [nil]
    let variables: [UnsafeMutablePointer<CChar>?] =
      environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
    defer { for pointer in arguments + variables { free(pointer) } }
    var child = pid_t()
    let code = posix_spawn(&child, "/bin/sh", &actions, &attributes, arguments, variables)
    if code != 0 { throw FileAccess.error(code, "\(Self.name): running", "/bin/sh") }
    return child
  }

  /// Waits for the end of the command, which has closed its output, and gives its status.
  private func status(of child: pid_t, by deadline: ContinuousClock.Instant) throws(SecretError) -> Int32 {
    var status: Int32 = 0
    while true {
      let ended = waitpid(child, &status, WNOHANG)
      if ended == child { return status }
      let code = errno
      if ended < 0 && code != EINTR {
        throw FileAccess.error(code, "Waiting for", Self.name)
      }
      if ContinuousClock.now > deadline {
        throw SecretError(
          .timedOut,
          "The command in \(Self.name) did not end in time.",
          advice: "Run it by hand to see why."
        )
      }
      usleep(2000)
    }
  }
}
