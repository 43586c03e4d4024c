package import CofferCore
internal import CofferLibc

/// A program that was run to its end, with its output in guarded memory.
package struct CapturedProcess: ~Copyable {
  package let end: ProcessEnd
  package let output: SecretBytes

  package enum StandardError {
    /// Captured together with the output.
    case captured
    /// This process's own standard error.
    case inherited
  }

  /// Runs a program with only the variables of `environment` and with an empty standard input. The first argument names
  /// the program, which is searched for on `PATH` unless the name contains a slash. `name` is the subject of the
  /// errors' sentences.
  ///
  /// With `timeout`, the program gets a process group of its own, which is killed at the timeout. Without it, there is
  /// no deadline, and keys of the terminal such as Ctrl-C reach the program. Throws `.unavailable` if there is no such
  /// program, `.tooLarge` above `limit` bytes of output, `.timedOut`, and `.io`. When this returns or throws, the
  /// program has ended.
  package static func run(
    _ arguments: [String], named name: String, environment: [String: String], standardError: StandardError,
    limit: Int, timeout: Duration? = nil
  ) throws(SecretError) -> CapturedProcess {
    let deadline = timeout.map { ContinuousClock.now + $0 }
    let (process, output): (pid_t, Descriptor)
    do throws(FileSystemError) {
      let pipe = try Descriptor.pipe()
      defer { withExtendedLifetime(pipe) {} }
      var spawn = Spawn()
      spawn.environment = .variables(environment)
      spawn.descriptors = [(STDIN_FILENO, .nullDevice), (STDOUT_FILENO, .descriptor(pipe.writing.number))]
      if standardError == .captured {
        spawn.descriptors.append((STDERR_FILENO, .descriptor(pipe.writing.number)))
      }
      spawn.defaultSignals = timeout == nil ? [SIGPIPE] : Spawn.allSignals
      spawn.isGroupLeader = timeout != nil
      (process, output) = (try spawn.start(arguments), pipe.reading)
    } catch {
      if error.number == ENOENT {
        throw SecretError(.unavailable, "\(name) was not found.", advice: "Install it, or check PATH.")
      }
      throw SecretError(.io, "\(name) cannot be run: \(error).")
    }
    defer { withExtendedLifetime(output) {} }
    do throws(SecretError) {
      let text = try readToEnd(
        of: output.number, named: "the output of \(arguments[0])", limit: limit, deadline: deadline)
      guard let text else { throw SecretError(.tooLarge, "\(name) printed more than \(limit) bytes.") }
      let end: ProcessEnd?
      do throws(FileSystemError) { end = try ProcessEnd(of: process, until: deadline) } catch {
        throw SecretError(.io, "The end of \(name) cannot be waited for: \(error).")
      }
      guard let end else {
        throw SecretError(.timedOut, "\(name) did not end in time.", advice: "Run it by hand to see why.")
      }
      return CapturedProcess(end: end, output: text)
    } catch {
      // Kills the group, if there is one: other processes of a shell would keep running and hold the pipe.
      kill(timeout == nil ? process : -process, SIGKILL)
      while waitpid(process, nil, 0) < 0 && errno == EINTR {}
      throw error
    }
  }
}
