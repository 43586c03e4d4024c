internal import CLinux
internal import Coffer
internal import Glibc

/// A program that is run to its end, with its output taken in.
struct CapturedProcess {
  struct Result: ~Copyable {
    /// The exit status, or 128 and the signal that ended it.
    let status: Int32
    let output: SecretBytes
  }

  /// Where what it says on standard error goes: to its output, or to this process's own standard error.
  enum Messages {
    case taken, passedOn
  }

  /// Runs `arguments`, the first of which is found on PATH, with nothing but `environment`. Standard input is
  /// empty. Signals that this process holds back are not held back in it. Throws `.unavailable` where there is
  /// no such program.
  static func run(
    _ arguments: [String],
    environment: [String: String],
    messages: Messages = .taken
  ) throws(SecretError) -> Result {
    var ends: [Int32] = [-1, -1]
    guard coffer_pipe(&ends) == 0 else { throw failure(arguments, errno) }
    defer { close(ends[0]) }

    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO)
    if messages == .taken { posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO) }

    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    sigemptyset(&none)
    var broken = none
    sigaddset(&broken, SIGPIPE)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setsigdefault(&attributes, &broken)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

    let argv: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
    let envp: [UnsafeMutablePointer<CChar>?] = environment.map { strdup("\($0)=\($1)") } + [nil]
    defer { (argv + envp).forEach { free($0) } }
    var identifier: pid_t = 0
    let result = posix_spawnp(&identifier, arguments[0], &actions, &attributes, argv, envp)
    close(ends[1])
    guard result == 0 else { throw failure(arguments, result) }

    let output = try ValueInput.readAll(ends[0], named: "the output of \(arguments[0])")
    var status: Int32 = 0
    while waitpid(identifier, &status, 0) < 0 {
      guard errno == EINTR else { throw failure(arguments, errno) }
    }
    let signal = status & 0x7F
    return Result(status: signal == 0 ? (status >> 8) & 0xFF : 128 + signal, output: output)
  }

  private static func failure(_ arguments: [String], _ code: Int32) -> SecretError {
    let program = arguments.first ?? ""
    if code == ENOENT {
      return SecretError(
        .unavailable, "There is no program \(program) here.", advice: "Install it, or check PATH.")
    }
    return SecretError(.io, "The program \(program) cannot be run: \(systemMessage(code)).")
  }
}
