internal import CLinux
internal import CofferCore
internal import CofferRemote
internal import CofferSystem
internal import CofferLibc

/// The program `coffer-remote-NAME`, which speaks with an engine for this process. It is started at the first request,
/// ends with this object, and is started again if it has ended. It gets the vault's sealed bytes and never a key.
/// Thread-safe.
final class RemoteHelper: @unchecked Sendable {  // `process` is used only under the lock
  private let url: RemoteURL
  private let directories: [String]
  private let lock = DeadlineLock()
  private var process: Process?

  /// The longest wait for an answer: 15 seconds. A helper gives up on its engine before that.
  private static let timeout = Duration.seconds(15)

  /// `directories` are where the program is searched for: beside this program and in `/usr/lib/coffer` by default.
  init(_ url: RemoteURL, in directories: [String]?) {
    self.url = url
    self.directories = directories ?? [Path.parent(of: Path.ofThisProgram), "/usr/lib/coffer"]
  }

  /// How a request has ended, and when by the clock of the engine, in microseconds since 1970.
  typealias Answer = (answer: RemoteAnswer, time: Int)

  /// Sends a request and returns the answer, which is never `.failed`. If a change may have been made, answers
  /// `.unknown`.
  ///
  /// Throws `.unavailable` if there is no helper, if it ends or answers nonsense, or if the engine cannot be reached,
  /// `.timedOut`, `.denied`, `.configuration`, `.tooLarge` and `.io`.
  func send(_ request: RemoteRequest) throws(SecretError) -> Answer {
    try lock.withLock(timeout: Self.timeout) { () throws(SecretError) in try sendLocked(request, isFirst: true) }
  }

  private func sendLocked(_ request: RemoteRequest, isFirst: Bool) throws(SecretError) -> Answer {
    if process == nil { process = try Process(program(), url) }
    guard var running = process.take() else { fatalError("a helper was just started") }
    // It has ended, or has sent an answer without a request.
    if isFirst, running.hasInput { return try sendLocked(request, isFirst: false) }
    let name = "The program coffer-remote-\(url.helper)"
    let failure: String
    switch running.answer(to: request, until: .now + Self.timeout) {
    case .success(let answer):
      process = consume running
      if case .failed(let failure) = answer.answer { throw error(failure) }
      return answer
    case .failure(.ended):
      // It may have been killed. A read is sent again once: it changes nothing.
      if isFirst, case .read = request { return try sendLocked(request, isFirst: false) }
      failure = "\(name) ended before it answered."
    case .failure(.timedOut): failure = "\(name) did not answer in 15 seconds."
    case .failure(.malformed): failure = "\(name) answered with something that is no answer."
    }
    // `running` is killed: what it would still answer belongs to no request.
    let unreachable = RemoteFailure(
      .unreachable, failure, advice: "To try it: secret remote check \(url.description.quotedForShell).")
    if case .publish = request { return (.unknown(unreachable), 0) }
    throw error(unreachable)
  }

  private func error(_ failure: RemoteFailure) -> SecretError {
    let code: SecretError.Code =
      switch failure.kind {
      case .unreachable: .unavailable
      case .busy: .timedOut
      case .denied: .denied
      case .configuration: .configuration
      case .large: .tooLarge
      case .failed: .io
      }
    let advice = failure.advice ?? (code == .unavailable ? "Check the URL, and whether the engine runs." : nil)
    return SecretError(code, failure.reason, advice: advice, remedy: code == .unavailable ? .diagnosis : nil)
  }

  /// The path of the program. Nobody but root and the owner of this program may be able to change it.
  private func program() throws(SecretError) -> String {
    let name = "coffer-remote-\(url.helper)"
    let owners = [0, FileStatus(of: "/proc/self/exe")?.owner ?? 0]
    for directory in directories {
      let path = "\(directory)/\(name)"
      guard let status = FileStatus(of: path, followingLink: false) else { continue }
      let all = [status, FileStatus(of: directory)].compactMap(\.self)
      guard status.isRegular, all.count == 2, all.allSatisfy({ owners.contains($0.owner) && $0.mode & 0o022 == 0 })
      else {
        throw SecretError(
          .denied,
          "The program \(path) was not started: it is a link, or others than root and the owner of this program can change it.",
          advice: "Correct the owner and the mode of the file and of its directory.")
      }
      return path
    }
    throw SecretError(
      .unavailable, "There is no program \(name), which vaults at \(url.helper) URLs need.",
      advice: "Install it in \(directories.joined(separator: " or in ")).", remedy: .diagnosis)
  }

  /// A running helper. It is killed with this value.
  private struct Process: ~Copyable {
    private let id: pid_t
    private let socket: Descriptor
    private var connection: RemoteConnection

    init(_ path: String, _ url: RemoteURL) throws(SecretError) {
      let (started, own): (pid_t, Descriptor)
      do throws(FileSystemError) {
        var ends: [Int32] = [-1, -1]
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        if socketpair(AF_UNIX, kind, 0, &ends) != 0 { throw FileSystemError(errno) }
        let other: Descriptor
        (own, other) = (try Descriptor(opened: ends[0]), try Descriptor(opened: ends[1]))
        var spawn = Spawn()
        spawn.descriptors = [
          (STDIN_FILENO, .descriptor(other.number)), (STDOUT_FILENO, .descriptor(other.number)),
          (STDERR_FILENO, .nullDevice),
        ]
        spawn.closesOthers = true
        // Signals of the terminal are for the program, which ends the helper.
        spawn.isGroupLeader = true
        spawn.defaultSignals = Spawn.allSignals
        let variables = Self.environment
        started = try variables.withUnsafeBufferPointer { vector throws(FileSystemError) in
          if let entries = vector.baseAddress { spawn.environment = .vector(entries) }
          return try spawn.start([path, url.description])
        }
        withExtendedLifetime(other) {}
      } catch { throw SecretError(.unavailable, "The program \(path) cannot be started: \(error).") }
      (id, socket) = (started, own)
      connection = RemoteConnection(input: socket.number, output: socket.number)
    }

    var hasInput: Bool { connection.hasInput }

    mutating func answer(
      to request: RemoteRequest, until deadline: ContinuousClock.Instant
    ) -> Result<Answer, RemoteConnection.Failure> {
      Result { () throws(RemoteConnection.Failure) in
        try connection.send(request.message, until: deadline)
        guard let message = try connection.receive(until: deadline) else { throw .ended }
        guard let answer = RemoteAnswer.parse(message) else { throw .malformed }
        return answer
      }
    }

    deinit {
      kill(id, SIGKILL)
      while waitpid(id, nil, 0) < 0 && errno == EINTR {}
    }

    /// The variables of this process without those that open or choose a vault. The texts are not copied.
    private static var environment: [UnsafeMutablePointer<CChar>?] {
      var (kept, next): ([UnsafeMutablePointer<CChar>?], _) = ([], coffer_environment())
      while let entry = next?.pointee {
        if strncmp(entry, "COFFER_", 7) != 0, strncmp(entry, "CREDENTIALS_DIRECTORY=", 22) != 0 { kept.append(entry) }
        next = next.map { $0 + 1 }
      }
      return kept + [nil]
    }
  }
}
